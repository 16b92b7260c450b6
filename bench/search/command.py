"""``python -m bench search``: saturation, focus and backtracking, at equal limits or CPU seconds."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

from bench.common.arguments import (
    add_cost,
    add_extract_time_limit,
    add_models,
    add_rules,
    add_save,
    chosen_models,
)
from bench.common.rule_sets import RULE_SETS
from bench.common.saving import RESULTS, report_saved, save_rows
from bench.search.measure import SEARCHES, SearchRun, measure
from bench.tensat.command import parse_k_values
from relational_tensat.base.checks import check_choice
from relational_tensat.cost import load_profile
from relational_tensat.explore import ExplorationOptions
from relational_tensat.extract import ExtractionOptions
from relational_tensat.models import MODELS

#: Searches that draw something at random.
RANDOM = ("focus", "best-first", "mcts")
HEADER = (
    "model", "search", "k", "node limit", "e-nodes", "worlds", "before µs", "after µs", "bound µs",
    "CPU limit", "CPU s", "best at s", "stop",
)  # fmt: skip


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("search", help="saturation beside searches over worlds")
    add_models(parser)
    parser.add_argument("--k", metavar="K,L", default="1,2", help="values of k_multi (1,2)")
    add_rules(parser, "shipped")
    add_cost(parser, "tensat_t4")
    parser.add_argument("--node-limits", metavar="N,M", default="2000,4000", help="(2000,4000)")
    parser.add_argument("--world-nodes", type=int, default=2_000, help="of first worlds (2000)")
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
    add_save(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure and print every model at every k_multi and node limit.

    Raises:
        UsageError: a model, profile or number that does not exist or cannot be.
    """
    rules = RULE_SETS[options.rules]()
    profile = load_profile(options.cost)
    extraction_options = ExtractionOptions(time_limit_s=options.extract_time_limit)
    searches = [check_choice("search", name, SEARCHES) for name in options.searches.split(",")]
    runs: list[SearchRun] = []
    print(_line(HEADER), flush=True)
    for model in chosen_models(options):
        for search, limits, cpu_limit_s, seed in _settings(options, searches):
            graph = MODELS[model]()
            runs.append(
                measure(
                    graph, search, limits, extraction_options, rules, profile, cpu_limit_s, seed
                )
            )
            print(_line(_cells(runs[-1])), flush=True)
    if options.save:
        report_saved(save(runs, options, RESULTS))
    return 0


def save(runs: Sequence[SearchRun], options: argparse.Namespace, directory: Path) -> Path:
    """Write the runs with their settings, machine, versions and commit; return the file.

    A second save of the same rules on the same day replaces the first.
    """
    path = directory / f"search-{date.today().isoformat()}-{options.rules}.json"
    return save_rows(path, options, runs, HEADER, _cells)


def _settings(
    options: argparse.Namespace, searches: Sequence[str]
) -> Iterator[tuple[str, ExplorationOptions, float | None, int]]:
    """Yield searches with their limits, CPU seconds and seeds.

    Backtracking has no k and no node limit; tree search has no k.
    """
    seconds: list[float | None] = [float(text) for text in options.cpu_seconds.split(",") if text]
    for cpu_limit_s in seconds or [None]:
        limits = _limits(options)
        for search in searches:
            own = limits[:1] if search == "backtracking" else limits
            if search == "mcts":
                own = [
                    limit
                    for limit in limits
                    if limit.multi_iterations == limits[0].multi_iterations
                ]
            seeds = options.seeds if search in RANDOM else 1
            yield from (
                (search, limit, cpu_limit_s, seed) for limit in own for seed in range(seeds)
            )


def _limits(options: argparse.Namespace) -> list[ExplorationOptions]:
    return [
        ExplorationOptions(
            multi_iterations=k_multi,
            node_limit=node_limit,
            world_nodes=options.world_nodes,
            universe_limit=options.universe_limit,
            time_limit_s=options.time_limit,
        )
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
        str(run.worlds),
        f"{run.cost_before_us:.1f}",
        f"{run.cost_after_us:.1f}",
        f"{run.bound_us:.1f}",
        "" if run.cpu_limit_s is None else f"{run.cpu_limit_s:g}",
        f"{run.cpu_s:.1f}",
        f"{run.best_s:.1f}",
        run.stop_reason,
    )


def _line(cells: Sequence[str]) -> str:
    return " ".join(f"{cell or '-':>11}" for cell in cells)
