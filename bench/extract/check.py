"""A result re-computed from the choice alone, by other code than the extractor's: networkx."""

from __future__ import annotations

import math
from importlib import import_module
from types import ModuleType

from relational_tensat.base.errors import MissingDependencyError
from relational_tensat.extract.problem import UNUSED, ExtractionProblem, Ints


def chosen_cost(problem: ExtractionProblem, choice: Ints) -> float | None:
    """Return what a choice costs, each e-node that the root reaches once; None if it is cyclic.

    Raises:
        ValueError: the choice lacks an e-node for a class that it needs, or names one of another.
        MissingDependencyError: networkx is not installed.
    """
    nx = _networkx()
    graph = nx.DiGraph()
    graph.add_node(problem.root)
    pending, costs = [problem.root], []
    while pending:
        klass = pending.pop()
        node = int(choice[klass])
        if node == UNUSED or problem.node_class[node] != klass:
            raise ValueError(f"class {klass} is needed, and the choice has no e-node of it")
        costs.append(float(problem.cost_us[node]))
        start, end = problem.child_ptr[node], problem.child_ptr[node + 1]
        for child in problem.child_idx[start:end].tolist():
            if child not in graph:
                pending.append(child)
            graph.add_edge(klass, child)
    return math.fsum(costs) if nx.is_directed_acyclic_graph(graph) else None


def is_cyclic(problem: ExtractionProblem) -> bool:
    """Return whether the e-graph has a cycle: a class that an e-node of it needs, at any depth.

    Raises:
        MissingDependencyError: networkx is not installed.
    """
    nx = _networkx()
    graph = nx.DiGraph()
    owners = problem.node_class.repeat(problem.child_ptr[1:] - problem.child_ptr[:-1])
    graph.add_edges_from(zip(owners.tolist(), problem.child_idx.tolist(), strict=True))
    return not nx.is_directed_acyclic_graph(graph)


def _networkx() -> ModuleType:
    """Return networkx, which only this bench needs: the others run without it."""
    try:
        return import_module("networkx")
    except ImportError:
        raise MissingDependencyError(
            "bench extract checks its results with networkx: pip install 'relational-tensat[bench]'"
        ) from None
