"""``python -m bench mcts``: the tables of tree search's paper; ``--subgraphs``: rollouts a second."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from bench.common.arguments import add_models, add_rules, add_save, chosen_models, parse_k_values
from bench.common.cell_results import results_of
from bench.common.plots import check_plotting
from bench.common.result_file import RESULTS, report_saved, save_rows
from bench.common.rule_sets import RULE_SETS
from bench.mcts.cells import COSTS, MAINS, cells_of
from bench.mcts.folder import report_of
from bench.mcts.kept import take_kept
from bench.mcts.rates import Rate, measure_rates
from bench.mcts.runs import Settings, TreeRuns
from relational_tensat.base.errors import check_choice
from relational_tensat.cost import load_profile
from relational_tensat.explore import ExplorationOptions

OUT = Path(__file__).parents[1] / "mcts-runs"
RATES_HEADER = (
    "model",
    "subgraphs",
    "universe",
    "simulated/s",
    "with reward/s",
    "subgraphs priced/s",
)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("mcts", help="tree search in the setting of its paper")
    add_models(parser)
    add_rules(parser, "taso-sound")
    parser.add_argument(
        "--costs", metavar="A,B", default=",".join(COSTS), help=f"profiles ({','.join(COSTS)})"
    )
    parser.add_argument(
        "--mains",
        metavar="A,B",
        default="moves",
        help=f"main extractions of {', '.join(MAINS)} (moves)",
    )
    parser.add_argument("--seeds", metavar="N", type=int, default=5, help="seeds (5)")
    parser.add_argument("--node-limit", type=int, default=2_000, help="of a subgraph (2000)")
    parser.add_argument("--universe-limit", type=int, default=50_000, help="(50000)")
    parser.add_argument(
        "--time-limit", type=float, default=600.0, help="CPU seconds of one search (600)"
    )
    parser.add_argument(
        "--extract-time-limit", type=float, default=60.0, help="CPU seconds of one extraction (60)"
    )
    parser.add_argument(
        "--total-limit", metavar="MIN", type=float, default=45.0,
        help="after so many minutes nothing more is begun (45)",
    )  # fmt: skip
    parser.add_argument("--out", metavar="DIR", type=Path, default=OUT, help="where runs are kept")
    parser.add_argument(
        "--kept", metavar="TABLE", type=Path, action="append", default=[],
        help="a folder in results/ whose runs are not made again, but taken into DIR",
    )  # fmt: skip
    parser.add_argument("--jobs", metavar="N", type=int, default=1, help="runs at a time (1)")
    parser.add_argument("--fresh", action="store_true", help="run again what is kept in DIR")
    parser.add_argument(
        "--subgraphs", metavar="N,M", help="measure rollouts of so many side by side"
    )
    add_save(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run what is missing, and write the tables.

    Raises:
        UsageError: a model, profile, extraction or number that does not exist or cannot be.
        MissingDependencyError: matplotlib is not installed.
        InputError: the folder cannot be written.
    """
    models = chosen_models(options)
    if options.subgraphs:
        return _run_rates(options, models)
    costs = options.costs.split(",")
    for cost in costs:
        check_choice("profile", cost, COSTS)
    mains = [check_choice("main extraction", main, MAINS) for main in options.mains.split(",")]
    check_plotting()
    settings = Settings(
        options.rules,
        options.node_limit,
        options.universe_limit,
        options.time_limit,
        options.extract_time_limit,
    )
    cells, experiment = cells_of(models, costs, mains, options.seeds), TreeRuns(settings)
    folder = options.out / options.rules
    for table in options.kept:
        n_taken = take_kept(table, cells, experiment, folder)
        print(f"{n_taken} runs taken from {table}", file=sys.stderr)
    results = results_of(
        cells,
        experiment,
        folder,
        jobs=options.jobs,
        fresh=options.fresh,
        total_limit_s=60 * options.total_limit,
    )
    report = report_of(models, costs, results, settings)
    print(report.markdown())
    if options.save:
        kept_in = RESULTS / f"mcts-{date.today().isoformat()}-{options.rules}"
        report.write(kept_in)
        report_saved(kept_in)
    return 0


def _run_rates(options: argparse.Namespace, models: Sequence[str]) -> int:
    """Measure rollouts by how many subgraphs are side by side."""
    rules = RULE_SETS[options.rules]()
    profile = load_profile(options.costs.split(",")[-1])
    limits = ExplorationOptions(
        subgraph_nodes=options.node_limit, universe_limit=options.universe_limit
    )
    rates: list[Rate] = []
    print(_line(RATES_HEADER), flush=True)
    for model in models:
        for subgraphs in parse_k_values(options.subgraphs):
            for rate in measure_rates(model, subgraphs, limits, rules, profile):
                rates.append(rate)
                print(_line(_rate_cells(rate)), flush=True)
    if options.save:
        path = RESULTS / f"mcts-rates-{date.today().isoformat()}-{options.rules}.json"
        report_saved(save_rows(path, options, rates, RATES_HEADER, _rate_cells))
    return 0


def _rate_cells(rate: Rate) -> tuple[str, ...]:
    both_s = rate.simulation_s + rate.reward_s
    return (
        rate.model[:11],
        f"{rate.subgraphs:,}",
        rate.state,
        f"{rate.subgraphs / max(rate.simulation_s, 1e-9):,.1f}",
        f"{rate.subgraphs / max(both_s, 1e-9):,.1f}",
        f"{rate.evaluated / max(rate.reward_s, 1e-9):,.0f}",
    )


def _line(cells: Sequence[str]) -> str:
    return " ".join(f"{cell:>15}" if len(cell) > 11 else f"{cell:>11}" for cell in cells)
