"""Graphs as a target runs them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from relational_tensat.cost import CostModel
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.extract import ExtractionOptions
from relational_tensat.extract.cheapest import cheapest_graph
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph

#: Each rule of a target makes a graph smaller: their e-graphs are small, and soon saturated.
_LIMITS = ExplorationOptions(iterations=10, node_limit=1_000_000, time_limit_s=None, blocks="never")
_EXTRACTION = ExtractionOptions(time_limit_s=10.0)


def as_run(graph: Graph, rules: Sequence[Rule], cost: CostModel) -> Graph:
    """Return the kernels that a target runs a graph by: of all that its rules find, the cheapest.

    Args:
        graph: of plain operators.
        rules: the target's.
        cost: of kernels.
    """
    with closing(EGraph.create(graph)) as egraph:
        explore(egraph, rules, _LIMITS)
        return cheapest_graph(egraph, cost, _EXTRACTION)
