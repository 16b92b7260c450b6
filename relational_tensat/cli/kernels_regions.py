"""``kernels regions``: the parts of a model that kernels can be sought for, and why others cannot."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relational_tensat.base.errors import UsageError
from relational_tensat.base.outputs import NEW_DATABASE
from relational_tensat.cli.parser import Parser, dimensions, merged
from relational_tensat.cli.rules_frame import add_json, report

if TYPE_CHECKING:
    from rich.console import Console

    from relational_tensat.mugraph.regions.regions import ModelRegion, RegionRow

HELP = "list the regions of a model that kernels can be sought for, and why others cannot"


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``kernels regions``."""
    parser.add_argument(
        "model", type=Path, metavar="MODEL",
        help="a .json or .onnx model; or a database of --db, or run --fuse --db: what became of its parts",
    )  # fmt: skip
    parser.add_argument(
        "--dim", type=dimensions, action="append", default=[], metavar="NAME=SIZE,…",
        help="sizes of the model's dynamic dimensions",
    )  # fmt: skip
    parser.add_argument(
        "--db", type=NEW_DATABASE, metavar="FILE",
        help="write them to a new database, which sql reads: tables region and fused_region",
    )  # fmt: skip
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Find, or read, and list."""
    if args.model.suffix == ".duckdb":
        if args.db is not None:
            raise UsageError(f"--db goes with a model, {args.model} is a database already")
        regions, left_out = _stored(args.model)
    else:
        regions, left_out = _found(args)
    report(
        lambda: _json(regions, left_out),
        lambda console: _show(regions, left_out, console),
        as_json=args.json,
    )
    return 0


def _found(args: argparse.Namespace) -> tuple[list[ModelRegion], list[RegionRow]]:
    """Return the regions of a model, and what was left out; written to a database, if one is named."""
    from relational_tensat.formats import load_model
    from relational_tensat.mugraph.regions.regions import find_regions, write_regions

    regions, left_out = find_regions(load_model(args.model, merged(args.dim, "--dim")))
    if args.db is not None:
        write_regions(args.db, regions, left_out)
    return regions, left_out


def _stored(path: Path) -> tuple[list[ModelRegion], list[RegionRow]]:
    """Return the rows of a database, and the regions, which that of a run has not.

    Raises:
        InputError: it is none of a run with ``--fuse``, or of this command.
    """
    from relational_tensat.cli.database import RunDatabase
    from relational_tensat.mugraph.regions.regions import RegionRow, regions_of

    database = RunDatabase(path)
    try:
        rows = database.named("inspect/fused_regions").rows
        tables = database.query("SELECT 1 FROM duckdb_tables() WHERE table_name = 'region'").rows
        regions = regions_of(database.named("inspect/regions").rows if tables else ())
    finally:
        database.close()
    return regions, [
        RegionRow(
            source, tuple(outputs), tuple(operators), fate, reason, us, kernel_us, mugraph or ""
        )
        for source, outputs, operators, fate, reason, us, kernel_us, mugraph in rows
    ]


def _json(regions: Sequence[ModelRegion], rows: Sequence[RegionRow]) -> dict[str, Any]:
    from relational_tensat.mugraph.graph.mugraph_json import encoded

    return {
        "regions": [
            {
                "outputs": r.outputs,
                "values": r.values,
                "nodes": r.nodes,
                "program": encoded(r.program),
            }
            for r in regions
        ],
        "left_out": [asdict(row) for row in rows],
    }


def _show(regions: Sequence[ModelRegion], rows: Sequence[RegionRow], console: Console) -> None:
    """Print both; of a region that recurs where it ends first, as --json and --db list each place."""
    from relational_tensat.cli.console import table

    if regions:
        columns = ("region", "ends in", "places", "nodes", "operators")
        found = table(*columns, numbers=("region", "places", "nodes"))
        for number, region in enumerate(regions):
            steps = region.program.operators
            operators = ", ".join(step.op for step in steps)
            ends, places = " + ".join(region.places[0]), str(len(region.places))
            found.add_row(str(number), ends, places, str(region.nodes), operators)
        console.print(found)
    if rows:
        others = table("ends in", "operators", "what became of it", "µs", "kernel µs", "because",
                       numbers=("µs", "kernel µs"))  # fmt: skip
        for row in rows:
            others.add_row(
                " ".join(row.outputs), ", ".join(row.operators), row.fate, _us(row.operators_us),
                _us(row.kernel_us), row.mugraph or row.reason,
            )  # fmt: skip
        console.print(others)


def _us(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
