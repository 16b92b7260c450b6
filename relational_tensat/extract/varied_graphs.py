"""Graphs of an e-graph in turn: the cheapest first, then graphs with parts that none before has.

Each of them is the cheapest that a greedy method finds where e-nodes of earlier ones are costly. So few
graphs have most e-nodes, and what is computed in another way is in one of them with operators around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from relational_tensat.base.watch import Watch
from relational_tensat.cost import CostModel
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.extract.extraction import extract
from relational_tensat.extract.extraction_options import ExtractionOptions
from relational_tensat.extract.few_measurements import settle
from relational_tensat.extract.greedy.dag import cheapest_greedy
from relational_tensat.extract.problem import UNUSED, ExtractionProblem, Ints
from relational_tensat.extract.tables import choose, chosen_with_classes
from relational_tensat.tensor import Graph

#: The price of an e-node of an earlier graph, in multiples of the cheapest graph.
_DEAR = 10.0
#: Seconds of a greedy method on a very large e-graph.
_QUICK_S = 2.0


@dataclass(frozen=True, slots=True)
class ClassedGraph:
    """A graph of an e-graph.

    Attributes:
        graph: the graph.
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
            choice = _quickly(replace(problem, cost_us=costs_us))
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


def _quickly(problem: ExtractionProblem) -> Ints:
    watch = Watch(_QUICK_S)
    return cheapest_greedy(problem, lambda: watch.is_over)[0]
