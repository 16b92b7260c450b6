"""``python -m bench paper``: the tables and figures of TENSAT's paper, from our own runs."""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path

from bench.common.arguments import add_cost, check_positive, parse_models
from bench.common.cell_results import results_of
from bench.common.plots import check_plotting
from bench.common.result_file import RESULTS, report_saved
from bench.paper.cells import PAPER_MODELS, TABLES, cells_of
from bench.paper.folder import report_of
from bench.paper.runs import PaperRuns, Settings
from relational_tensat.base.errors import check_choice
from relational_tensat.cost import load_profile

OUT = Path(__file__).parents[1] / "paper-runs"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("paper", help="the tables and figures of TENSAT's paper")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, default=OUT, help="where runs and tables are kept"
    )
    parser.add_argument("--models", metavar="A,B", help="only these; default: the paper's seven")
    parser.add_argument(
        "--tables", metavar="A,B", default=",".join(TABLES), help=f"({','.join(TABLES)})"
    )
    parser.add_argument(
        "--time-limit", metavar="S", type=float, default=60.0,
        help="of each exploration, extraction and sequential search (60)",
    )  # fmt: skip
    parser.add_argument(
        "--total-limit", metavar="MIN", type=float, default=45.0,
        help="after so many minutes nothing more is begun (45)",
    )  # fmt: skip
    add_cost(parser, "tensat_t4")
    parser.add_argument("--jobs", metavar="N", type=int, default=2, help="runs at a time (2)")
    parser.add_argument("--fresh", action="store_true", help="run again what is kept in DIR")
    parser.add_argument("--save", action="store_true", help="write to bench/results/ as well")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run what is missing, and write the tables.

    Raises:
        UsageError: a model, table, profile or number that does not exist or cannot be.
        MissingDependencyError: matplotlib is not installed.
        InputError: the folder cannot be written.
    """
    models = parse_models(options.models) if options.models else list(PAPER_MODELS)
    names = [check_choice("table", name.strip(), TABLES) for name in options.tables.split(",")]
    load_profile(options.cost)
    for value, flag in (
        (options.time_limit, "--time-limit"),
        (options.total_limit, "--total-limit"),
        (options.jobs, "--jobs"),
    ):
        check_positive(value, flag)
    check_plotting()
    settings = Settings(options.time_limit, options.cost)
    results = results_of(
        cells_of(names, models),
        PaperRuns(settings),
        options.out / "cells",
        jobs=options.jobs,
        fresh=options.fresh,
        total_limit_s=60 * options.total_limit,
    )
    report = report_of(names, models, results, settings)
    report.write(options.out)
    print(report.markdown())
    if options.save:
        folder = RESULTS / f"paper-{date.today().isoformat()}"
        report.write(folder)
        report_saved(folder)
    return 0
