"""``python -m bench mcts``: tree search in its paper's setting; ``--worlds``: rollouts a second."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
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
from bench.mcts.published import SECONDS
from bench.mcts.rates import Rate, measure_rates
from bench.mcts.search_run import TreeRun, measure
from bench.tensat.command import parse_k_values
from relational_tensat.cost import load_profile
from relational_tensat.explore import ExplorationOptions
from relational_tensat.explore.strategies.mcts.tree_options import TreeOptions
from relational_tensat.extract import ExtractionOptions

HEADER = (
    "model", "seed", "decisions", "rollouts", "CPU s", "paper s", "before µs", "saturation", "world",
    "rollout", "universe", "stop",
)  # fmt: skip
RATES_HEADER = ("model", "worlds", "universe", "simulated/s", "with reward/s", "worlds priced/s")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("mcts", help="tree search in the setting of its paper")
    add_models(parser)
    add_rules(parser, "taso")
    parser.add_argument("--seeds", metavar="S,T", default="0", help="seeds (0)")
    parser.add_argument("--node-limit", type=int, default=2_000, help="of a world (2000)")
    parser.add_argument("--universe-limit", type=int, default=50_000, help="(50000)")
    parser.add_argument("--time-limit", type=float, default=600.0, help="of one search (600)")
    parser.add_argument("--worlds", metavar="N,M", help="measure rollouts of so many side by side")
    add_cost(parser, "tensat_t4")
    add_extract_time_limit(parser, "extraction")
    add_save(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure and print.

    Raises:
        UsageError: a model, profile or number that does not exist or cannot be.
    """
    rules = RULE_SETS[options.rules]()
    profile = load_profile(options.cost)
    limits = ExplorationOptions(
        world_nodes=options.node_limit,
        universe_limit=options.universe_limit,
        time_limit_s=options.time_limit,
    )
    rows: list[TreeRun | Rate] = []
    print(_line(RATES_HEADER if options.worlds else HEADER), flush=True)
    for model in chosen_models(options):
        if options.worlds:
            for worlds in parse_k_values(options.worlds):
                for rate in measure_rates(model, worlds, limits, rules, profile):
                    rows.append(rate)
                    print(_line(_rate_cells(rate)), flush=True)
            continue
        for seed in [int(text) for text in options.seeds.split(",")]:
            extraction = ExtractionOptions(time_limit_s=options.extract_time_limit)
            found = measure(model, seed, limits, TreeOptions(), extraction, rules, profile)
            rows.append(found)
            print(_line(_cells(found)), flush=True)
    if options.save:
        report_saved(save(rows, options, RESULTS))
    return 0


def save(rows: Sequence[TreeRun | Rate], options: argparse.Namespace, directory: Path) -> Path:
    """Write the rows with their settings, machine, versions and commit; return the file."""
    kind = "rates" if options.worlds else "searches"
    path = directory / f"mcts-{kind}-{date.today().isoformat()}-{options.rules}.json"
    if options.worlds:
        return save_rows(
            path, options, [row for row in rows if isinstance(row, Rate)], RATES_HEADER, _rate_cells
        )
    return save_rows(
        path, options, [row for row in rows if isinstance(row, TreeRun)], HEADER, _cells
    )


def _cells(run: TreeRun) -> tuple[str, ...]:
    costs_us = (run.before_us, run.saturation_us, run.world_us, run.rollout_us, run.universe_us)
    return (
        run.model[:11],
        str(run.seed),
        str(run.decisions),
        f"{run.rollouts:,}",
        f"{run.planning_cpu_s:.1f}",
        f"{SECONDS[run.model]:,.1f}",
        *(f"{cost_us:.1f}" for cost_us in costs_us),
        run.stop_reason,
    )


def _rate_cells(rate: Rate) -> tuple[str, ...]:
    both_s = rate.simulation_s + rate.reward_s
    return (
        rate.model[:11],
        f"{rate.worlds:,}",
        rate.state,
        f"{rate.worlds / max(rate.simulation_s, 1e-9):,.1f}",
        f"{rate.worlds / max(both_s, 1e-9):,.1f}",
        f"{rate.evaluated / max(rate.reward_s, 1e-9):,.0f}",
    )


def _line(cells: Sequence[str]) -> str:
    return " ".join(f"{cell:>15}" if len(cell) > 11 else f"{cell:>11}" for cell in cells)
