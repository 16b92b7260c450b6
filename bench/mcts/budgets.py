"""``python -m bench.mcts.budgets``: what more rollouts a decision are worth, budget by budget, by seed.

The paper says that the budget trades time for quality, and that with a budget of 1 tree search does about
what TENSAT does. Rows go to standard output as CSV: what the ILP finds in the subgraph that was decided on,
and in all of them together, and the CPU seconds of planning and rollouts.
"""

from __future__ import annotations

import csv
import sys
import time
from contextlib import closing
from dataclasses import dataclass

from bench.common.rule_sets import RULE_SETS
from bench.models import MODELS
from relational_tensat.base.deadline import counting_cpu_seconds
from relational_tensat.base.process import ProcessOptions
from relational_tensat.cost import load_profile
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, Observer
from relational_tensat.explore.exploration_options import TreeOptions
from relational_tensat.explore.strategies.mcts.decisions import explore_tree
from relational_tensat.explore.strategies.strategy import SearchSettings
from relational_tensat.extract import ExtractionOptions
from relational_tensat.extract.anytime import AnytimeExtractor
from relational_tensat.run.progress import Silent

BUDGETS = tuple(2**power for power in range(10))
SEEDS = range(5)
#: Searches of the others take minutes at the largest budgets.
SWEPT = ("vit_huge", "vit_large", "nasrnn", "bert")


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """A search with one budget.

    Attributes:
        real_us: the cheapest graph of the subgraph that was decided on.
        all_us: of all subgraphs together.
    """

    model: str
    seed: int
    budget: int
    real_us: float
    all_us: float
    decisions: int
    rollouts: int
    cpu_s: float


def searched(model: str, budget: int, seed: int) -> BudgetRow:
    """Search a model with TASO's sound rules and the paper's limits, under ``tensat_t4``."""
    limits = ExplorationOptions(subgraph_nodes=2_000, universe_limit=50_000, time_limit_s=600.0)
    extraction, process = ExtractionOptions(time_limit_s=60.0), ProcessOptions()
    with counting_cpu_seconds(), closing(EGraph.create(MODELS[model]())) as egraph:
        started = time.process_time()
        chooser = AnytimeExtractor(egraph, load_profile("tensat_t4"), extraction, process, Silent())
        search = SearchSettings(limits, chooser, Observer(), seed, TreeOptions(budget=budget))
        exploration = explore_tree(egraph, RULE_SETS["taso-sound"](), search)
        cpu_s = time.process_time() - started
        found = chooser.finish(exploration.iterations)
        real = next(part for part in exploration.subgraphs if part.kind == "decision")
        rollouts = sum(decision.rollouts for decision in exploration.decisions)
        return BudgetRow(
            model, seed, budget, real.best_us, found.cost_us, len(exploration.decisions), rollouts, cpu_s
        )  # fmt: skip


def main() -> None:
    """Search all, and write a row for each as soon as it is there."""
    writer = csv.writer(sys.stdout)
    writer.writerow(BudgetRow.__slots__)
    for seed in SEEDS:
        for model in SWEPT:
            for budget in BUDGETS:
                row = searched(model, budget, seed)
                writer.writerow(getattr(row, name) for name in BudgetRow.__slots__)
                sys.stdout.flush()


if __name__ == "__main__":
    main()
