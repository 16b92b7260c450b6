"""``costs farm``: times the kernels of many models, each once, into a snapshot."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.base.option import options_in
from relational_tensat.cli.closed_output import write_line
from relational_tensat.cli.common import add_model_files
from relational_tensat.cli.parser import Parser, add_tree, written_values
from relational_tensat.run.options import HIGH, Options

if TYPE_CHECKING:
    import argparse

    from relational_tensat.fleet.farm import FarmPlan


def farm_arguments(parser: Parser) -> None:
    """Declare the flags of ``costs farm``."""
    parser.usage = "relational-tensat costs farm MODEL… -o FOLDER [options of the runs to come]"
    add_model_files(parser, "+")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FOLDER", required=True,
        help="where the snapshot goes, costs.duckdb, and a table of each device",
    )  # fmt: skip
    parser.add_argument(
        "--on", metavar="RUNNER", default="here",
        help="here, processes:N, ray, ray:ADDRESS or slurm:N: searches go anywhere; kernels are measured "
        "one at a time on each quiet core (Ray's resource quiet_core) [here]",
    )  # fmt: skip
    parser.add_argument(
        "--device", choices=("cpu", "cuda"),
        help="the device, if --cost and --effort do not say so [cpu]",
    )  # fmt: skip
    add_tree(parser, Options)


def farm_costs(args: argparse.Namespace) -> int:
    """Measure what runs of the models ask for; say before each part how long it takes."""
    from relational_tensat.fleet.farm import farm

    values = written_values(args, (option for _, option in options_in(Options)))
    if "cost" not in values and values.get("effort") != HIGH:
        values["cost"] = args.device or "cpu"
    farmed = farm(
        args.models,
        args.output,
        Options.of(**values),
        on=args.on,
        planned=lambda plan: write_line(plan_text(plan)),
        measured=None if args.quiet else _show,
    )
    for model, reason in farmed.refused.items():
        write_line(f"{model}: refused: {reason}")
    for table in farmed.tables:
        write_line(
            f"{table.path}: {table.kernels:,} kernels of {table.device}; asked for by "
            f"{', '.join(table.models) or 'no model of these'}"
        )
    write_line(f"{farmed.snapshot}: {farmed.measured:,} kernels measured now")
    return 0


def plan_text(plan: FarmPlan) -> str:
    """Return in one line what will be measured, where, how long, and what would halve that."""
    cores = "1 quiet core" if plan.quiet_cores == 1 else f"{plan.quiet_cores} quiet cores"
    more = "" if plan.kernels == 1 else f"; {2 * plan.quiet_cores} would halve it"
    return (
        f"{plan.kernels:,} kernels to measure on {plan.device}: about {_seconds(plan.seconds)} "
        f"on {cores}{more}"
    )


def _seconds(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 120 else f"{max(seconds, 1):.0f} s"


def _show(done: int, total: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{done:,} of {total:,} kernels" + ("\n" if done == total else ""))
        sys.stderr.flush()
