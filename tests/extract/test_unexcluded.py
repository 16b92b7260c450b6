"""What no bound excludes: beside all graphs of small e-graphs, made one by one."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.base.watch import Watch
from relational_tensat.extract import UNUSED, ExtractionProblem, topological_order
from relational_tensat.extract.problem import dag_cost_us
from relational_tensat.extract.unexcluded import lower_bounds_us, unexcluded
from tests.extract.instances import random_problem
from tests.extract.small_egraphs import small_problem


def graphs_of(problem: ExtractionProblem) -> list[np.ndarray]:
    """Return all acyclic choices of what the root needs."""
    classes = range(problem.n_classes)
    members = [[*np.flatnonzero(problem.node_class == k).tolist(), UNUSED] for k in classes]
    graphs = []
    for choice in itertools.product(*members):
        graph = np.array(choice, np.int32)
        try:
            used = topological_order(problem, graph)
        except RelationalTensatError:
            continue
        if all((node == UNUSED) == (k not in used) for k, node in enumerate(choice)):
            graphs.append(graph)
    return graphs


def assert_closed(problem: ExtractionProblem, nodes: list[int]) -> None:
    """Check that each e-node comes once, after one of each of its children's classes."""
    derived: set[int] = set()
    assert len(nodes) == len(set(nodes))
    for node in nodes:
        assert derived.issuperset(problem.children(node).tolist())
        derived.add(int(problem.node_class[node]))


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**9), most=st.integers(0, 6))
def test_every_e_node_of_a_graph_as_cheap_is_among_them(seed: int, most: int) -> None:
    problem = random_problem(seed, max_classes=5)
    graphs = graphs_of(problem)
    costs_us = [dag_cost_us(problem, graph) for graph in graphs]
    first = graphs[int(np.argmin(costs_us))]
    bounds_us = lower_bounds_us(problem, first, Watch())
    for graph, cost_us in zip(graphs, costs_us, strict=True):
        assert (bounds_us[graph[graph != UNUSED]] <= cost_us + 1e-9).all()
    for rank in (0, len(graphs) // 2):  # the cheapest graph, and one that is not
        at = int(np.argsort(costs_us)[rank])
        found = unexcluded(problem, graphs[at], costs_us[at], problem.n_nodes)
        assert_closed(problem, found)
        for graph, cost_us in zip(graphs, costs_us, strict=True):
            if cost_us <= costs_us[at]:
                assert set(graph[graph != UNUSED].tolist()) <= set(found)
        chosen = graphs[at][graphs[at] != UNUSED].tolist()
        first = unexcluded(problem, graphs[at], costs_us[at], most)
        assert first == found[: len(chosen) + most]
        assert sorted(first[: len(chosen)]) == sorted(chosen)


def test_most_of_what_is_in_no_cheapest_graph_is_excluded() -> None:
    dearer = excluded = 0
    for problem in map(small_problem, range(8)):
        graphs = graphs_of(problem)
        best_us = min(dag_cost_us(problem, graph) for graph in graphs)
        cheapest = [graph for graph in graphs if dag_cost_us(problem, graph) <= best_us + 1e-9]
        needed = {node for graph in cheapest for node in graph[graph != UNUSED].tolist()}
        found = unexcluded(problem, cheapest[0], best_us, problem.n_nodes)
        assert needed <= set(found)
        dearer += problem.n_nodes - len(needed)
        excluded += problem.n_nodes - len(found)
    assert 0.8 * dearer < excluded <= dearer
