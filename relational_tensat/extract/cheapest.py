"""The cheapest graph of an e-graph, as it is now."""

from __future__ import annotations

from relational_tensat.cost import CostModel
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.extract.extraction import extract
from relational_tensat.extract.extraction_options import ExtractionOptions
from relational_tensat.extract.settling import settle
from relational_tensat.extract.tables import choose, chosen_graph
from relational_tensat.tensor import Graph


def cheapest_graph(egraph: EGraph, cost: CostModel, options: ExtractionOptions) -> Graph:
    """Return the cheapest graph that an extractor finds, which is ``chosen`` in the tables then.

    Raises:
        NoSolutionError: the root has no acyclic derivation.
    """
    table, extraction = settle(
        egraph, cost, lambda problem, start: extract(problem.problem, options, start=start)
    )
    choose(egraph, table, extraction.choice)
    return chosen_graph(egraph)
