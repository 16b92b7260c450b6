"""``fleet``: many models into a folder, and what became of them."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relational_tensat.base.option import options_in
from relational_tensat.base.shown_text import escaped
from relational_tensat.cli.parser import Parser, add_tree, written_values
from relational_tensat.run.options import Options

if TYPE_CHECKING:
    from relational_tensat.fleet.task import FleetRow

#: Options that name one file: each model has its own.
_OF_ONE = ("db", "view", "kernels", "force", "inputs", "certificate")


def fleet_arguments(parser: Parser) -> None:
    """Declare the flags of ``fleet``."""
    parser.usage = "relational-tensat fleet run MODEL… -o FOLDER [options of run]"
    parser.add_argument(
        "models", nargs="+", metavar="MODEL",
        help="a model, a folder (all .onnx files below it), or a quoted pattern such as 'models/*.onnx'",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FOLDER",
        help="where the results go, and the ledger fleet.duckdb; the same command goes on there",
    )  # fmt: skip
    parser.add_argument(
        "--on", default="processes:1", metavar="RUNNER",
        help="processes:N, several need --effort low; or here, where a crash ends all [%(default)s]",
    )  # fmt: skip
    parser.add_argument(
        "--certificates", action="store_true",
        help="write a certificate beside each result, NAME.proof.json: relational-tensat check replays it",
    )  # fmt: skip
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object a model, a line each"
    )
    add_tree(parser, Options)


def run_fleet(args: argparse.Namespace) -> int:
    """Optimize the models that are not done; print a line for each, and a summary."""
    from relational_tensat.base.errors import UsageError
    from relational_tensat.fleet.fleet import fleet

    values = written_values(args, (option for _, option in options_in(Options)))
    for name in _OF_ONE:
        if name in values:
            raise UsageError(f"--{name} is for one model, expected relational-tensat run")
    counted = Counter[str]()

    def noted(row: FleetRow) -> None:
        counted[row.state] += 1
        sys.stdout.write((json.dumps(_as_object(row)) if args.json else line_of(row)) + "\n")
        sys.stdout.flush()

    try:
        rows = fleet(
            args.models,
            args.output,
            Options.of(**values),
            on=args.on,
            certificates=args.certificates,
            noted=noted,
        )
    except KeyboardInterrupt:
        done = sum(counted.values())
        sys.stderr.write(f"interrupted after {done} models: the same command goes on\n")
        raise
    if not args.json:
        sys.stdout.write(_summary(rows, sum(counted.values())) + "\n")
    return 0


def status_arguments(parser: Parser) -> None:
    """Declare the flags of ``fleet status``."""
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the output folder of a fleet")
    parser.add_argument("--json", action="store_true", help="print a JSON array of objects")


def fleet_status(args: argparse.Namespace) -> int:
    """Print what became of the models so far."""
    from relational_tensat.fleet.fleet import ledger_of

    rows = ledger_of(args.folder).rows()
    if args.json:
        sys.stdout.write(json.dumps([_as_object(row) for row in rows], indent=2) + "\n")
        return 0
    for row in rows:
        sys.stdout.write(line_of(row) + "\n")
    sys.stdout.write(_summary(rows, len(rows)) + "\n")
    return 0


def line_of(row: FleetRow) -> str:
    """Return a row in one line, whatever names files have."""
    if row.speedup is None:
        return escaped(f"{row.model}: {row.state}: {row.reason}")
    interval = "" if row.low is None else f" [{row.low:.3f}, {row.high:.3f}]"
    gain = "the original" if row.state == "kept" else f"{row.speedup:.3f} times as fast{interval}"
    return escaped(f"{row.model}: {row.state}, {gain}, {row.basis}, {row.wall_s:.1f} s")


def _summary(rows: list[FleetRow], now: int) -> str:
    counted = Counter(row.state for row in rows)
    states = ", ".join(f"{count} {state}" for state, count in sorted(counted.items()))
    before = len(rows) - now
    earlier = f"; {before} of them done before" if before else ""
    return f"{len(rows)} models: {states or 'none'}{earlier}"


def _as_object(row: FleetRow) -> dict[str, Any]:
    values = asdict(row)
    del values["report"]
    return values | {"ended": row.ended.isoformat(), "rules": dict(row.rules)}
