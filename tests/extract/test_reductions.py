from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relational_tensat.extract import UNUSED, dag_cost_us, is_acyclic
from relational_tensat.extract.exact.decomposition import components
from relational_tensat.extract.exact.reduce.declaration import REDUCTIONS
from relational_tensat.extract.exact.reduce.required_classes import (
    dominators,
    members_of,
    required_classes,
)
from relational_tensat.extract.exact.reduce.rounds import pin_required, reduce
from relational_tensat.extract.exact.reduce.smaller_problem import Reduced, unreduced
from relational_tensat.extract.greedy.bottom_up import DagDeriver
from relational_tensat.extract.index import cyclic_sets, strong_components
from tests.extract.instances import NodeSpec, brute_force_us, build, random_problem

SEEDS = st.integers(0, 10**9)


def prepared(seed: int) -> Reduced:
    """Return a random e-graph without underivable e-nodes, which some reductions presume."""
    return REDUCTIONS["underivable"].run(unreduced(random_problem(seed)))


def assert_equivalent(before: Reduced, after: Reduced) -> None:
    """The optimum stays, and what is chosen after the reduction lifts to no costlier a choice."""
    best = brute_force_us(before.problem)
    assert brute_force_us(after.problem) == pytest.approx(best)
    choice = DagDeriver(after.problem).derive(after.problem.cost_us)
    lifted = after.lift(choice)
    assert is_acyclic(after.source, lifted)
    assert dag_cost_us(after.source, lifted) <= dag_cost_us(after.problem, choice) + 1e-9


@pytest.mark.parametrize("name", sorted(REDUCTIONS))
@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_each_reduction_keeps_an_optimum(name: str, seed: int) -> None:
    before = prepared(seed)
    after = REDUCTIONS[name].run(before)
    assert after.problem.n_nodes <= before.problem.n_nodes
    assert_equivalent(before, after)


@settings(max_examples=200, deadline=None)
@given(seed=SEEDS)
def test_all_reductions_with_pinning_keep_an_optimum(seed: int) -> None:
    before = unreduced(random_problem(seed))
    after = reduce(before)
    assert_equivalent(before, after)
    pinned = pin_required(after)
    assert_equivalent(before, pinned)
    assert_equivalent(before, pin_required(REDUCTIONS["single-parents"].run(pinned)))


@settings(max_examples=100, deadline=None)
@given(seed=SEEDS)
def test_components_add_up(seed: int) -> None:
    pinned = pin_required(prepared(seed))
    problem = pinned.problem
    (root_node,) = np.flatnonzero(problem.node_class == problem.root)
    parts = components(problem)
    total = problem.cost_us[root_node] + sum(brute_force_us(part.problem) for part in parts)
    assert total == pytest.approx(brute_force_us(problem))
    choice = DagDeriver(problem).derive(problem.cost_us)
    rebuilt = np.full(problem.n_classes, UNUSED, dtype=np.int32)
    rebuilt[problem.root] = root_node
    for part in parts:
        part.write(part.restrict(choice), rebuilt)
    assert rebuilt.tolist() == choice.tolist()


@settings(max_examples=100, deadline=None)
@given(seed=SEEDS)
def test_required_classes_are_what_no_derivation_does_without(seed: int) -> None:
    problem = prepared(seed).problem
    required = members_of(required_classes(problem)[problem.root])
    for klass in required:
        if klass != problem.root:
            without = unreduced(
                build(
                    [
                        (int(problem.node_class[node]), 1.0, problem.children(node).tolist())
                        for node in range(problem.n_nodes)
                        if problem.node_class[node] != klass
                    ],
                    problem.n_classes,
                    problem.root,
                )
            )
            assert problem.root not in REDUCTIONS["underivable"].run(without).problem.node_class


def test_each_reduction_does_what_its_name_says() -> None:
    cases: dict[str, tuple[list[NodeSpec], int]] = {
        "underivable": ([(0, 1.0, []), (0, 0.0, [1]), (1, 0.0, [1])], 1),
        "self-loops": ([(0, 1.0, [1]), (1, 1.0, []), (1, 0.0, [1]), (1, 0.0, [0])], 2),
        "free-classes": ([(0, 1.0, [1]), (1, 0.0, [2]), (2, 0.0, [])], 1),
        "single-free": ([(0, 1.0, [1]), (1, 0.0, [2]), (2, 1.0, []), (2, 2.0, [])], 3),
        "single-parents": ([(0, 1.0, [1]), (1, 2.0, [2]), (2, 1.0, [])], 1),
        # Class 1 has two e-nodes, and only the e-node of class 0 needs it.
        "single-users": ([(0, 1.0, [1]), (1, 2.0, []), (1, 1.0, [2]), (2, 0.5, [])], 3),
        # Classes 3 and 4 serve both classes 1 and 2, over classes that stand between.
        "pass-through": (
            [
                (0, 0.0, [1, 2]),
                *[(klass, 0.0, [between]) for klass in (1, 2) for between in (3, 4)],
                *[(klass, 0.0, [klass + 2]) for klass in (3, 4)],
                *[(klass, 3.0, []) for klass in (3, 4, 5, 6)],
            ],
            4,
        ),
        "dear": ([(0, 1.0, [1]), (0, 4.0, [2]), (1, 2.0, []), (2, 0.0, [])], 2),
        # Class 2 needs class 1 in any case, so the second e-node of class 0 is dominated.
        "required": ([(0, 1.0, [1]), (0, 1.5, [2]), (1, 2.0, []), (2, 0.0, [1])], 2),
        # Class 4 does again what class 2 is, for which it comes too late, together with class 3.
        "detours": (
            [
                (0, 0.0, [1, 3]),
                *[(1, 1.0, [2]), (1, 1.0, [5]), (5, 6.0, [])],
                *[(2, 5.0, []), (2, 0.0, [4]), (3, 5.0, [1]), (3, 0.0, [4]), (4, 8.0, [1])],
            ],
            6,
        ),
    }
    assert sorted(cases) == sorted(REDUCTIONS)
    for name, (nodes, left) in cases.items():
        problem = build(nodes, max(klass for klass, _, _ in nodes) + 1)
        after = REDUCTIONS[name].run(unreduced(problem))
        assert after.problem.n_nodes == left, name


def test_what_must_close_a_cycle_is_dropped() -> None:
    # Class 1 is below class 0 only, and its second e-node needs class 2, which needs class 1.
    nodes = [(0, 1.0, [2]), (1, 5.0, []), (1, 0.0, [2]), (2, 1.0, [1])]
    after = REDUCTIONS["required"].run(unreduced(build(nodes, 3)))
    assert after.node_origin.tolist() == [0, 1, 3]


def test_dominators_of_a_diamond() -> None:
    problem = build(
        [(0, 0.0, [1, 2]), (1, 0.0, [3]), (2, 0.0, [3]), (3, 0.0, [4]), (4, 0.0, [])], 5
    )
    assert [members_of(bits) for bits in dominators(problem)] == [
        [0],
        [0, 1],
        [0, 2],
        [0, 3],
        [0, 3, 4],
    ]


def test_strong_components_of_a_known_graph() -> None:
    label = strong_components([[1], [2], [0, 3], [4], [3], [5]])
    assert label[0] == label[1] == label[2]
    assert label[3] == label[4]
    assert len({label[0], label[3], label[5]}) == 3


def test_cyclic_sets_are_found_below_the_root_only() -> None:
    problem = build([(0, 0.0, [1]), (1, 0.0, [2]), (2, 0.0, [1]), (3, 0.0, [3])], 4)
    assert cyclic_sets(problem, np.arange(4, dtype=np.int32)) == [[1, 2]]
