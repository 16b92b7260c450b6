"""The cheapest graph, found with as few measurements as decide it.

Where costs are measured, an e-graph has far more kernels than any of its cheapest graphs. So the others are
first given bounds that are not above their costs (``cost.bound``). The cheapest graph under these is
extracted, its kernels are measured, and again, until it has measured kernels only. No other graph is then
cheaper, as each costs at least what it does under the bounds. Each round measures a kernel at least, so
there is an end; at worst all have been measured, as without bounds (lazy evaluation of edges, as in LazySP:
Dellin and Srinivasa 2016, "A unifying formalism for shortest path problems with expensive edge
evaluations"). In which order that is done proves nothing, but measuring may end by time. So likely choices
are measured first: those that a greedy method finds by estimates, until these are measured. Then bounds
lead. They are low where little is known, and lead to kernels that will not be chosen. Out of time, kernels
that bounds lead to are estimated instead, and the others are neither measured nor estimated. Where no
estimate is below its bound, the choice is then as cheap as if all had been estimated.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeAlias

from relational_tensat.base.watch import Watch
from relational_tensat.cost import CostModel, CostSource, as_source
from relational_tensat.cost.source import ABOUT, AT_LEAST
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.extract.greedy.dag import cheapest_greedy
from relational_tensat.extract.problem import UNUSED, Extraction, ExtractionProblem, Ints
from relational_tensat.extract.tables import TableProblem, ask_for_chosen, extraction_problem

#: Seconds of a greedy method on a very large e-graph.
_QUICK_S = 2.0
#: Extracts, beginning from a choice if one is given.
Search: TypeAlias = Callable[[TableProblem, Ints | None], Extraction]


def settle(
    egraph: EGraph,
    cost: CostModel,
    search: Search,
    measuring: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> tuple[TableProblem, Extraction]:
    """Extract and measure until all that was chosen is measured; see the module.

    Args:
        measuring: the context for measurements.

    Returns:
        The problem with bounds for what was not measured, and what was extracted: its bound is one on
        what graphs really cost.
    """
    while True:
        table, quick = None, None
        # A greedy method's choice is measured until nothing new is to be measured.
        for asking, origin in ((CostSource.about, ABOUT), (CostSource.at_least, AT_LEAST)):
            is_measured = False
            while not is_measured:
                with measuring():
                    table = extraction_problem(egraph, cost, asking)
                if not as_source(cost).is_lazy:
                    break
                quick = quick_choice(table.problem)
                chosen = chosen_enodes(table, quick)
                with measuring():
                    is_measured = not ask_for_chosen(egraph, cost, chosen, origin)
            if not is_measured:
                break
        assert table is not None
        extraction = search(table, quick)
        with measuring():
            if not ask_for_chosen(egraph, cost, chosen_enodes(table, extraction.choice)):
                return table, extraction


def quick_choice(problem: ExtractionProblem) -> Ints:
    """Return the cheapest choice that greedy methods find in two seconds."""
    watch = Watch(_QUICK_S)
    return cheapest_greedy(problem, lambda: watch.is_over)[0]


def chosen_enodes(table: TableProblem, choice: Ints) -> list[int]:
    """Return the ids of a choice's e-nodes."""
    ids: list[int] = table.enodes[choice[choice != UNUSED]].tolist()
    return ids
