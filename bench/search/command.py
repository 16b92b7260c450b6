"""``python -m bench search``: searches at equal limits or CPU seconds, and their cost over time."""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path

from bench.common.arguments import (
    add_cost,
    add_extract_time_limit,
    add_rules,
    add_save,
    parse_k_values,
)
from bench.common.cell_results import results_of
from bench.common.machine import describe_machine
from bench.common.plots import check_plotting
from bench.common.report import Report
from bench.common.result_file import RESULTS, provenance, report_saved
from bench.models import MODELS
from bench.search.cells import cells_of
from bench.search.kept import take_kept
from bench.search.measure import BUDGETS_S, SEARCHES
from bench.search.models import model_of
from bench.search.plots import plot_costs
from bench.search.runs import SearchRuns, Settings
from bench.search.search_run import Limits, SearchRun
from bench.search.tables import at_own_limit, tables_of
from relational_tensat.base.errors import check_choice
from relational_tensat.cost import load_profile

HEADER = (
    "model", "search", "k", "node limit", "e-nodes", "subgraphs", "before µs", "after µs", "bound µs",
    "CPU limit", "CPU s", "best at s", "seed", "at 5 s", "at 20 s", "at 60 s", "stop",
)  # fmt: skip


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("search", help="saturation beside searches over subgraphs")
    parser.add_argument(
        "models", nargs="*", metavar="MODEL",
        help="of `bench models`, decoder_24, transformer_N, or an ONNX or JSON file; [all 13 models]",
    )  # fmt: skip
    parser.add_argument("--k", metavar="K,L", default="1,2", help="values of k_multi (1,2)")
    add_rules(parser, "shipped")
    add_cost(parser, "tensat_t4")
    parser.add_argument("--node-limits", metavar="N,M", default="2000,4000", help="(2000,4000)")
    parser.add_argument(
        "--subgraph-nodes", metavar="N", type=int, default=2_000,
        help="of first subgraphs (2000); 0: as many as a run takes by default, more for a large model",
    )  # fmt: skip
    parser.add_argument("--universe-limit", type=int, default=50_000, help="limit (50000)")
    parser.add_argument("--time-limit", type=float, default=60.0, help="of one exploration (60)")
    parser.add_argument(
        "--cpu-seconds", metavar="S,T", default="", help="explore for so many CPU seconds each"
    )
    parser.add_argument("--seeds", type=int, default=1, help="runs of what is random (1)")
    parser.add_argument(
        "--searches", metavar="A,B", default="saturation,focus", help=f"of {', '.join(SEARCHES)}"
    )
    add_extract_time_limit(parser, "extraction")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, help="keep each run here, and do not run it again"
    )
    parser.add_argument(
        "--kept", metavar="TABLE", type=Path, action="append", default=[],
        help="a folder in results/ whose runs are not made again, but taken into DIR",
    )  # fmt: skip
    parser.add_argument("--jobs", metavar="N", type=int, default=1, help="runs at a time (1)")
    parser.add_argument(
        "--total-limit", metavar="MIN", type=float, default=math.inf,
        help="after so many minutes nothing more is begun (none)",
    )  # fmt: skip
    add_save(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run what is missing, print all runs, and write tables and plots.

    Raises:
        UsageError: a model, profile or number that does not exist or cannot be.
        InputError: the folder cannot be written.
    """
    models = options.models or list(MODELS)
    for model in models:
        model_of(model)  # refused before anything is measured
    searches = [check_choice("search", name, SEARCHES) for name in options.searches.split(",")]
    load_profile(options.cost)
    if options.save:
        check_plotting()
    settings = Settings(
        options.rules, options.cost, options.subgraph_nodes, options.universe_limit,
        options.time_limit, options.extract_time_limit,
    )  # fmt: skip
    cells = cells_of(models, searches, _limits(options), options.seeds)
    with tempfile.TemporaryDirectory() as nowhere:
        folder = options.out / options.rules if options.out else Path(nowhere)
        experiment = SearchRuns(settings, folder)
        for table in options.kept:
            n_taken = take_kept(table, cells, experiment)
            print(f"{n_taken} runs taken from {table}", file=sys.stderr)
        results = results_of(
            cells,
            experiment,
            folder,
            jobs=options.jobs,
            total_limit_s=60 * options.total_limit,
        )
    runs = [
        replace(SearchRun.of(result["run"]), model=Path(cell.model).stem)
        for cell, result in results.items()
        if "run" in result
    ]
    print(_line(HEADER))
    runs.sort(key=lambda found: _place(found, models))
    for found in runs:
        print(_line(_cells(found)))
    if options.save:
        introduction = _introduction(options, len(cells), runs)
        report_saved(save(runs, options, RESULTS, introduction))
    n_missing = len(cells) - len(runs)
    if n_missing:
        print(f"{n_missing} of {len(cells)} runs are missing", file=sys.stderr)
    return 0


def _place(run: SearchRun, models: Sequence[str]) -> tuple[int, int, int, int, int]:
    """Return where a run stands in the table."""
    names = [Path(model).stem for model in models]
    place = names.index(run.model) if run.model in names else len(names)
    return place, SEARCHES.index(run.search), run.k_multi, run.node_limit, run.seed


def save(
    runs: Sequence[SearchRun], options: argparse.Namespace, directory: Path, introduction: str
) -> Path:
    """Write tables, plots and runs, with settings, machine, versions and commit; return the folder.

    A second save of the same rules on the same day, kept in a folder of the same name, replaces the first.
    """
    kept = f"-{options.out.name}" if options.out else ""
    folder = directory / f"search-{date.today().isoformat()}-{options.rules}{kept}"
    left_out = ("command", "run", "save")
    settings = {key: str(value) for key, value in vars(options).items() if key not in left_out}
    plots = {"moments": partial(plot_costs, at_own_limit(runs))} if runs else {}
    origin = {**provenance(), "settings": settings}
    Report("search", introduction, tables_of(runs), plots, origin, []).write(folder)
    return folder


def _introduction(options: argparse.Namespace, n_cells: int, runs: Sequence[SearchRun]) -> str:
    """Return what stands before the tables: by what code, and how busy the machine was."""
    made = [run.made for run in runs]
    commits = sorted({commit for one in made for commit in one.commit.split()})
    n_shared = sum(bool(run.same_as) for run in runs)
    machine = describe_machine()
    least = min((one.least_load for one in made), default=0.0)
    most = max((one.most_load for one in made), default=0.0)
    return (
        "# Searches compared\n\n"
        f"{date.today().isoformat()}, runs by commit {', '.join(commits)}; {machine['cpu']},"
        f" {machine['cores']} cores, one thread; rules: {options.rules}, costs: {options.cost}; limits of"
        f" seconds are CPU seconds. Load average when runs began: {least:.1f} to {most:.1f}. {len(runs)} of"
        f" {n_cells} runs are here, of which {n_shared} are another's, step by step. '-': not there.\n"
    )


def _limits(options: argparse.Namespace) -> list[Limits]:
    seconds: list[float | None] = [float(text) for text in options.cpu_seconds.split(",") if text]
    return [
        Limits(k_multi, node_limit, cpu_s)
        for cpu_s in seconds or [None]
        for k_multi in parse_k_values(options.k)
        for node_limit in parse_k_values(options.node_limits)
    ]


def _cells(run: SearchRun) -> tuple[str, ...]:
    return (
        run.model,
        run.search,
        str(run.k_multi),
        f"{run.node_limit:,}",
        f"{run.e_nodes:,}",
        str(run.subgraphs),
        f"{run.cost_before_us:.1f}",
        f"{run.cost_after_us:.1f}",
        f"{run.bound_us:.1f}",
        "" if run.cpu_limit_s is None else f"{run.cpu_limit_s:g}",
        f"{run.cpu_s:.1f}",
        f"{run.best_s:.1f}",
        str(run.seed),
        *("" if cost is None else f"{cost:.1f}" for cost in map(run.cost_at_us, BUDGETS_S)),
        run.stop_reason,
    )


def _line(cells: Sequence[str]) -> str:
    return " ".join(f"{cell or '-':>11}" for cell in cells)
