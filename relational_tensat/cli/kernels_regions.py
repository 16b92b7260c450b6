"""``kernels regions``: the parts of a model that kernels can be sought for, and why others cannot."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.cli.parser import Parser, dimensions, merged
from relational_tensat.cli.rules_frame import add_json, report

if TYPE_CHECKING:
    from rich.console import Console

    from relational_tensat.mugraph.regions.finding_regions import LeftOut, Region

HELP = "list the regions of a model that kernels can be sought for, and why other nodes end none"


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``kernels regions``."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="a .json or .onnx model")
    parser.add_argument(
        "--dim", type=dimensions, action="append", default=[], metavar="NAME=SIZE,…",
        help="sizes of the model's dynamic dimensions",
    )  # fmt: skip
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Find and list."""
    from relational_tensat.formats import load_model
    from relational_tensat.mugraph.graph.mugraph_json import encoded
    from relational_tensat.mugraph.regions.finding_regions import find_regions

    regions, left_out = find_regions(load_model(args.model, merged(args.dim, "--dim")))
    report(
        lambda: {
            "regions": [
                {"outputs": r.outputs, "nodes": r.nodes, "program": encoded(r.program)}
                for r in regions
            ],
            "left_out": [{"output": left.output, "reason": left.reason} for left in left_out],
        },
        lambda console: _show(regions, left_out, console),
        as_json=args.json,
    )
    return 0


def _show(regions: list[Region], left_out: list[LeftOut], console: Console) -> None:
    from relational_tensat.cli.console import table
    from relational_tensat.mugraph.graph.mugraph import Operation

    rows = table("region", "ends in", "nodes", "operators", numbers=("region", "nodes"))
    for number, region in enumerate(regions):
        steps = (step for step in region.program.steps if isinstance(step, Operation))
        operators = ", ".join(step.op for step in steps)
        rows.add_row(str(number), " ".join(region.outputs), str(region.nodes), operators)
    console.print(rows)
    if left_out:
        reasons = table("no region ends in", "because")
        for left in left_out:
            reasons.add_row(left.output, left.reason)
        console.print(reasons)
