"""``python -m bench search``: saturation beside focus, at equal limits."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path

from bench.common.arguments import add_cost, add_extract_time_limit, add_save
from bench.common.saving import RESULTS, report_saved, save_result
from bench.search.measure import SEARCHES, SearchRun, measure
from bench.tensat.command import parse_k_values
from relational_tensat.base.checks import check_choice
from relational_tensat.cost import load_profile
from relational_tensat.explore import ExplorationOptions
from relational_tensat.extract import ExtractionOptions
from relational_tensat.models import MODELS
from relational_tensat.rules.library import load_rules, taso_rules

RULE_SETS = ("taso", "shipped")
HEADER = (
    "model", "search", "k", "node limit", "e-nodes", "worlds", "before µs", "after µs", "bound µs",
    "CPU s", "best at s", "stop",
)  # fmt: skip


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("search", help="saturation beside searches over worlds")
    parser.add_argument("models", nargs="*", metavar="MODEL", help="[all 13 models]")
    parser.add_argument("--k", metavar="K,L", default="1,2", help="values of k_multi (1,2)")
    parser.add_argument("--rules", choices=RULE_SETS, default="shipped", help="rule set (shipped)")
    add_cost(parser, "tensat_t4")
    parser.add_argument("--node-limits", metavar="N,M", default="2000,4000", help="(2000,4000)")
    parser.add_argument("--world-nodes", type=int, default=2_000, help="of first worlds (2000)")
    parser.add_argument("--universe-limit", type=int, default=50_000, help="limit (50000)")
    parser.add_argument("--time-limit", type=float, default=60.0, help="of one exploration (60)")
    add_extract_time_limit(parser, "extraction")
    add_save(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure and print every model at every k_multi and node limit.

    Raises:
        UsageError: a model, profile or number that does not exist or cannot be.
    """
    models = [check_choice("model", name, MODELS) for name in options.models or MODELS]
    rules = taso_rules() if options.rules == "taso" else load_rules()
    profile = load_profile(options.cost)
    extraction_options = ExtractionOptions(time_limit_s=options.extract_time_limit)
    runs: list[SearchRun] = []
    print(_line(HEADER), flush=True)
    for model in models:
        for limits in _limits(options):
            for search in SEARCHES:
                graph = MODELS[model]()
                runs.append(measure(graph, search, limits, extraction_options, rules, profile))
                print(_line(_cells(runs[-1])), flush=True)
    if options.save:
        report_saved(save(runs, options, RESULTS))
    return 0


def save(runs: Sequence[SearchRun], options: argparse.Namespace, directory: Path) -> Path:
    """Write the runs with their settings, machine, versions and commit; return the file.

    A second save of the same rules on the same day replaces the first.
    """
    path = directory / f"search-{date.today().isoformat()}-{options.rules}.json"
    content = {
        "settings": {
            key: value
            for key, value in sorted(vars(options).items())
            if key not in ("command", "run", "save")
        },
        "runs": [asdict(run) for run in runs],
    }
    return save_result(path, content)


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
        f"{run.cpu_s:.1f}",
        f"{run.best_s:.1f}",
        run.stop_reason,
    )


def _line(cells: Sequence[str]) -> str:
    return " ".join(f"{cell:>11}" for cell in cells)
