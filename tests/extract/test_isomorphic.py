"""Isomorphic components are detected, verified, and solved once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from relational_tensat.extract import (
    UNUSED,
    ExtractionProblem,
    dag_cost_us,
    extract,
)
from relational_tensat.extract.exact.isomorphic import (
    Isomorphism,
    is_isomorphism,
    isomorphic_groups,
)
from relational_tensat.extract.greedy.bottom_up import DagDeriver, tree_greedy
from tests.extract.instances import NodeSpec, brute_force_us, build, layered_problem, random_problem

SEEDS = st.integers(0, 10**9)


def renamed(problem: ExtractionProblem, seed: int) -> ExtractionProblem:
    """Return the same e-graph with its classes and e-nodes in another order."""
    rng = np.random.default_rng(seed)
    name = rng.permutation(problem.n_classes)
    nodes: list[NodeSpec] = [
        (
            int(name[problem.node_class[node]]),
            float(problem.cost_us[node]),
            name[problem.children(node)].tolist(),
        )
        for node in rng.permutation(problem.n_nodes).tolist()
    ]
    return build(nodes, problem.n_classes, int(name[problem.root]))


def copies(problem: ExtractionProblem, count: int, seed: int) -> ExtractionProblem:
    """Return an e-graph of renamed copies that share nothing, below one free e-node."""
    nodes: list[NodeSpec] = []
    roots: list[int] = []
    for number in range(count):
        copy = renamed(problem, seed + number)
        first = number * problem.n_classes
        nodes += [
            (
                first + int(copy.node_class[node]),
                float(copy.cost_us[node]),
                (first + copy.children(node)).tolist(),
            )
            for node in range(copy.n_nodes)
        ]
        roots.append(first + copy.root)
    top = count * problem.n_classes
    return build([*nodes, (top, 0.0, roots)], top + 1, top)


@settings(max_examples=100, deadline=None)
@given(seed=SEEDS, order=SEEDS)
def test_a_renamed_e_graph_is_found_and_choices_go_both_ways(seed: int, order: int) -> None:
    first = random_problem(seed)
    second = renamed(first, order)
    groups = isomorphic_groups([first, second])
    assume(len(groups) == 1)  # much symmetry may defeat the search
    (_, none), (index, isomorphism) = groups[0]
    assert none is None
    assert index == 1
    assert isomorphism is not None
    assert is_isomorphism(isomorphism)
    choice = tree_greedy(first)
    mapped = isomorphism.onto_second(choice)
    assert dag_cost_us(second, mapped) == pytest.approx(dag_cost_us(first, choice))
    assert np.array_equal(isomorphism.onto_first(mapped), choice)


def test_renaming_is_nearly_always_found() -> None:
    problems = [random_problem(seed) for seed in range(200)]
    count = sum(len(isomorphic_groups([problem, renamed(problem, 7)])) == 1 for problem in problems)
    assert count >= 190


@settings(max_examples=100, deadline=None)
@given(first=SEEDS, second=SEEDS)
def test_isomorphic_components_have_the_same_optimum(first: int, second: int) -> None:
    components = [random_problem(first % 40, 3), random_problem(second % 40, 3)]
    if len(isomorphic_groups(components)) == 1:
        assert brute_force_us(components[0]) == pytest.approx(brute_force_us(components[1]))


def test_what_differs_is_not_isomorphic() -> None:
    # A ring of six classes, and two of three: every class has the same neighbours' colours.
    def rings(*sizes: int) -> ExtractionProblem:
        nodes: list[NodeSpec] = []
        first = 1
        for size in sizes:
            nodes += [(first + at, 1.0, [first + (at + 1) % size]) for at in range(size)]
            nodes += [(first + at, 5.0, []) for at in range(size)]
            first += size
        return build([(0, 0.0, list(range(1, first))), *nodes], first)

    assert len(isomorphic_groups([rings(6), rings(3, 3)])) == 2
    assert len(isomorphic_groups([rings(3, 3), renamed(rings(3, 3), 1)])) == 1


def test_a_wrong_renaming_is_refused() -> None:
    problem = build([(0, 1.0, [1]), (1, 2.0, []), (1, 3.0, [])], 2)
    classes, nodes = np.arange(2, dtype=np.int32), np.arange(3, dtype=np.int32)
    right = Isomorphism(problem, problem, classes, nodes)
    assert is_isomorphism(right)
    for wrong in (
        replace(right, nodes=np.array([0, 2, 1], dtype=np.int32)),  # costs
        replace(right, nodes=np.array([0, 1, 1], dtype=np.int32)),  # two become one
        replace(right, classes=classes[::-1].copy()),  # root
        replace(right, second=build([(0, 1.0, [1]), (1, 2.0, []), (1, 3.0, [0])], 2)),  # children
        replace(right, second=build([(0, 1.0, [1]), (1, 2.0, []), (0, 3.0, [])], 2)),  # members
    ):
        assert not is_isomorphism(wrong)


@settings(max_examples=15, deadline=None)
@given(seed=SEEDS, count=st.integers(2, 4))
def test_the_optimum_of_copies_is_that_of_one_times_their_number(seed: int, count: int) -> None:
    problem = random_problem(seed)
    extraction = extract(copies(problem, count, seed))
    assert extraction.optimal
    assert extraction.cost_us == pytest.approx(count * brute_force_us(problem))


def test_copies_are_solved_once_and_the_report_says_so() -> None:
    problem = copies(layered_problem(layers=1, width=5, seed=3), 3, 11)
    extraction, plain = (
        extract(problem),
        extract(problem, disable=("isomorphic",)),
    )
    assert extraction.optimal
    assert extraction.cost_us == pytest.approx(plain.cost_us)
    assert extraction.components - extraction.distinct_components == 2
    assert plain.components == plain.distinct_components > 0
    assert UNUSED not in extraction.choice[problem.children(problem.n_nodes - 1)]
    assert dag_cost_us(problem, DagDeriver(problem).derive(problem.cost_us)) >= extraction.cost_us
