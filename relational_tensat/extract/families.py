"""Graphs of an e-graph that really differ: in the families of rules that made them, or in their parts.

A cheapest graph without some family of rules is the cheapest of the e-graph without the e-nodes that it
made. Each family of the cheapest graph is forbidden in turn, and so on from those. This finds the graphs in
order of cost, one for each set of families (Lawler 1972, "A procedure for computing the k best solutions to
discrete optimization problems", with families in place of variables).

``varied_graphs`` gives the cheapest graph first, then graphs with parts that none before has. Each is the
cheapest that a greedy method finds where e-nodes of earlier ones are costly. So few graphs have most
e-nodes, and what is computed in another way is in one of them with operators around it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from relational_tensat.cost import CostModel
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.extract.extraction import extract
from relational_tensat.extract.extraction_options import ExtractionOptions
from relational_tensat.extract.few_measurements import quick_choice, settle
from relational_tensat.extract.problem import (
    UNUSED,
    Extraction,
    ExtractionProblem,
    Ints,
    dag_cost_us,
    topological_order,
)
from relational_tensat.extract.tables import ORIGINAL, choose, chosen_with_classes
from relational_tensat.tensor import Graph

#: Graphs whose costs are closer than this, as a fraction, are alike.
_DIFFERENT = 1e-3


@dataclass(frozen=True, eq=False)
class FamilyChoice:
    """A cheapest choice without some families.

    Attributes:
        choice: per class, its e-node.
        cost_us: its cost.
        families: which families made its e-nodes.
        without: those that it was to do without.
    """

    choice: Ints
    cost_us: float
    families: frozenset[int]
    without: frozenset[int]


def cheapest_by_family(
    problem: ExtractionProblem,
    family: NDArray[np.int32],
    first: Ints,
    solve: Callable[[ExtractionProblem], Extraction],
    is_over: Callable[[], bool] = lambda: False,
) -> Iterator[FamilyChoice]:
    """Yield choices that differ in families and in cost, the cheapest first.

    A family is only avoided where a graph can do without: the original graph's e-nodes always can be had.

    Args:
        family: per e-node, the number of the family that made it, or ``ORIGINAL``.
        first: a cheapest choice.
        solve: returns a cheapest choice of a problem.
        is_over: whether to look for no more.
    """
    penalty_us = 10.0 * float(problem.cost_us.sum()) + 1.0
    cheapest_us = dag_cost_us(problem, first)
    found_us = -math.inf
    forbidden: set[frozenset[int]] = {frozenset()}
    count = 0
    waiting = [_entry(problem, family, first, frozenset(), count)]
    while waiting:
        _, _, one = heapq.heappop(waiting)
        if one.cost_us > found_us + _DIFFERENT * cheapest_us:
            found_us = one.cost_us
            yield one
        for each in sorted(one.families):
            without = one.without | {each}
            if without in forbidden:
                continue
            if is_over():
                return
            forbidden.add(without)
            is_forbidden = np.isin(family, list(without))
            cost_us = np.where(is_forbidden, problem.cost_us + penalty_us, problem.cost_us)
            extraction = solve(replace(problem, cost_us=cost_us))
            count += 1
            entry = _entry(problem, family, extraction.choice, without, count)
            if not entry[2].families & without:
                heapq.heappush(waiting, entry)


def _entry(
    problem: ExtractionProblem,
    family: NDArray[np.int32],
    choice: Ints,
    without: frozenset[int],
    count: int,
) -> tuple[float, int, FamilyChoice]:
    """Return a choice with what it is ordered by: cost, then age."""
    cost_us = dag_cost_us(problem, choice)
    used = family[choice[topological_order(problem, choice)]]
    families = frozenset(used[used != ORIGINAL].tolist())
    return cost_us, count, FamilyChoice(choice, cost_us, families, without)


#: The price of an e-node of an earlier graph, in multiples of the cheapest graph.
_DEAR = 10.0


@dataclass(frozen=True, slots=True)
class ClassedGraph:
    """A graph of an e-graph.

    Attributes:
        classes: of the values that it computes, by their names.
    """

    graph: Graph
    classes: Mapping[str, int]


class VariedGraphs:
    """Graphs of an e-graph in turn, as long as they have e-nodes that those before have not.

    Args:
        egraph: does not change while there are graphs; between them the cheapest is ``chosen`` in tables.
        cost: of e-nodes.
        options: of the extraction of the cheapest.
    """

    def __init__(self, egraph: EGraph, cost: CostModel, options: ExtractionOptions) -> None:
        self._egraph = egraph
        self._table, self._cheapest = settle(
            egraph, cost, lambda problem, start: extract(problem.problem, options, start=start)
        )
        self._is_used = np.zeros(self._table.problem.n_nodes, np.bool_)

    def graphs(self) -> Iterator[ClassedGraph]:
        """Yield the cheapest graph, and then the others.

        Raises:
            NoSolutionError: the root has no acyclic derivation.
        """
        yield self._graph(self._cheapest.choice)
        problem = self._table.problem
        self._use(problem.original)  # the model itself is known
        dear_us = _DEAR * max(self._cheapest.cost_us, 1.0)
        while True:
            costs_us = problem.cost_us + np.where(self._is_used, dear_us, 0.0)
            choice = quick_choice(replace(problem, cost_us=costs_us))
            if self._is_used[choice[choice != UNUSED]].all():
                return
            found = self._graph(choice)
            choose(self._egraph, self._table, self._cheapest.choice)
            yield found

    def left(self) -> list[tuple[int, str]]:
        """Return e-class and operator of the e-nodes that no graph so far has, but for free ones."""
        is_left = ~self._is_used & (self._table.problem.cost_us > 0)
        ids = self._table.enodes[is_left].tolist()
        rows = self._egraph.database.run("extract/operators_of_enodes", ids=ids)
        return [(int(klass), str(op)) for klass, op in rows]

    def _graph(self, choice: Ints) -> ClassedGraph:
        self._use(choice)
        choose(self._egraph, self._table, choice)
        return ClassedGraph(*chosen_with_classes(self._egraph))

    def _use(self, choice: Ints) -> None:
        self._is_used[choice[choice != UNUSED]] = True
