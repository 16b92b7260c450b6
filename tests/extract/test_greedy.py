from __future__ import annotations

import numpy as np
import pytest

from relational_tensat.base.errors import NoSolutionError
from relational_tensat.extract import (
    UNUSED,
    ExtractionOptions,
    dag_cost_us,
    extract,
    is_acyclic,
)
from relational_tensat.extract.greedy.bottom_up import settle_by_tree_cost
from tests.extract.instances import NodeSpec, brute_force_us, build, layered_problem, random_problem
from tests.tiers import seeds


@pytest.mark.parametrize("seeds", seeds(400))
@pytest.mark.parametrize("method", ["greedy", "greedy-dag"])
def test_choices_are_acyclic_and_not_below_the_optimum(method: str, seeds: range) -> None:
    for seed in seeds:
        problem = random_problem(seed)
        extraction = extract(problem, ExtractionOptions(method))
        assert is_acyclic(problem, extraction.choice)
        assert extraction.cost_us == dag_cost_us(problem, extraction.choice)
        assert extraction.cost_us >= brute_force_us(problem) - 1e-9


def test_tree_costs_are_those_of_a_slow_fixpoint() -> None:
    """Oracle: every e-node is looked at until no class gets cheaper."""
    for seed in range(200):
        problem = random_problem(seed)
        choice, costs = settle_by_tree_cost(problem, None)
        least = np.full(problem.n_classes, np.inf)
        for _ in range(problem.n_classes):
            for node in range(problem.n_nodes):
                total = problem.cost_us[node] + sum(least[c] for c in problem.children(node))
                owner = problem.node_class[node]
                least[owner] = min(least[owner], total)
        assert costs == pytest.approx(least)
        assert ((choice == UNUSED) == np.isinf(least)).all()


@pytest.mark.parametrize("seeds", seeds(400))
def test_greedy_dag_is_never_worse_than_the_original(seeds: range) -> None:
    compared = 0
    for seed in seeds:
        problem = random_problem(seed)
        if problem.has_original:
            compared += 1
            cost_us = extract(problem, ExtractionOptions("greedy-dag")).cost_us
            assert cost_us <= dag_cost_us(problem, problem.original)
    assert compared > len(seeds) // 4


def test_greedy_dag_sees_sharing_where_tree_greedy_does_not() -> None:
    # Class 2 costs 5 and serves both halves; alone, each half is cheaper without it.
    problem = build(
        [
            (0, 0.0, [1, 3]),
            (1, 4.0, []),
            (1, 0.0, [2]),
            (2, 5.0, []),
            (3, 1.0, [2]),
            (3, 5.5, []),
        ],
        4,
    )
    assert extract(problem, ExtractionOptions("greedy")).cost_us == 9.5
    # Bottom-up, the half that is alone with class 2 still decides alone.
    assert extract(problem, ExtractionOptions("greedy-dag")).cost_us <= 9.5
    assert extract(problem).cost_us == 6.0


def test_shared_chain_is_charged_once_by_greedy_dag() -> None:
    # Both children of the first e-node depend on class 3 (cost 10): tree cost 22, real cost 12.
    problem = build(
        [
            (0, 0.0, [1, 2]),
            (0, 15.0, []),
            (1, 1.0, [3]),
            (2, 1.0, [3]),
            (3, 10.0, []),
        ],
        4,
    )
    assert extract(problem, ExtractionOptions("greedy")).cost_us == 15.0
    assert extract(problem, ExtractionOptions("greedy-dag")).cost_us == 12.0


def test_tree_costs_beyond_float_range_still_choose() -> None:
    depth = 1500  # each level doubles the tree cost: 2^1500 is no float
    nodes: list[NodeSpec] = [(3 * i, 0.0, [3 * i + 1, 3 * i + 2]) for i in range(depth)]
    nodes += [(3 * i + k, 1.0, [3 * i + 3]) for i in range(depth) for k in (1, 2)]
    nodes.append((3 * depth, 1.0, []))
    problem = build(nodes, 3 * depth + 1)
    for method in ("greedy", "greedy-dag"):
        assert extract(problem, ExtractionOptions(method)).cost_us == 2 * depth + 1


@pytest.mark.parametrize("method", ["greedy", "greedy-dag", "ilp"])
def test_root_without_acyclic_derivation_is_refused(method: str) -> None:
    problem = build([(0, 1.0, [1]), (1, 1.0, [0])], 2)
    with pytest.raises(NoSolutionError, match="no acyclic derivation"):
        extract(problem, ExtractionOptions(method))


def test_large_e_graph_gets_an_answer() -> None:
    problem = layered_problem(layers=40, width=8, seed=1)
    assert problem.n_nodes > 30_000
    extraction = extract(problem, ExtractionOptions("greedy-dag"))
    assert is_acyclic(problem, extraction.choice)
    assert extraction.cost_us <= dag_cost_us(problem, problem.original)
