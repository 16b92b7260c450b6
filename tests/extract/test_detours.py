"""Detours: what is dropped is missing in some optimum, by brute force on nets of two steps."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relational_tensat.extract import ExtractionProblem, dag_cost_us
from relational_tensat.extract.exact.reduce.declaration import REDUCTIONS
from relational_tensat.extract.exact.reduce.reductions.detours import drop_detours
from relational_tensat.extract.exact.reduce.smaller_problem import Reduced, unreduced
from relational_tensat.extract.greedy.bottom_up import DagDeriver, settle_by_tree_cost
from relational_tensat.extract.problem import UNUSED
from tests.extract.instances import NodeSpec, brute_force_us, build

EXAMPLES = int(os.environ.get("RELATIONAL_TENSAT_EXAMPLES", "150"))
SEEDS = st.integers(0, 10**9)


def two_steps(seed: int) -> ExtractionProblem:
    """Return a net of two steps, some of whose operators may be computed together.

    Class 0 is the root, class 1 the result of the first step. Then come classes of the first step,
    of the second, and pairs of one each.
    """
    rng = np.random.default_rng(seed)
    n_early, n_late, n_pairs = (int(rng.integers(1, 4)) for _ in range(3))
    early = list(range(2, 2 + n_early))
    late = list(range(2 + n_early, 2 + n_early + n_late))
    pairs = list(range(2 + n_early + n_late, 2 + n_early + n_late + n_pairs))

    def cost(least: int = 0) -> float:
        return float(rng.integers(least, 6))

    def some(classes: list[int], count: int) -> list[int]:
        return rng.choice(classes, size=min(count, len(classes)), replace=False).tolist()

    def below(classes: list[int], klass: int) -> list[int]:
        return [child for child in classes if child < klass]

    nodes: list[NodeSpec] = [(1, cost(), some(early, int(rng.integers(1, 3))))]
    if rng.random() < 0.6:
        nodes.append((1, cost(), some([*early, *pairs], int(rng.integers(1, 3)))))
    nodes += [
        (klass, cost(1), some(below(early, klass), int(rng.integers(0, 2)))) for klass in early
    ]
    for klass in late:
        before = some([1, *below(late, klass)], 1)
        nodes.append((klass, cost(1), before + some(early, int(rng.random() < 0.3))))
    for klass in pairs:
        first, second = some(early, 1)[0], some(late, 1)[0]
        nodes.append((klass, cost(), [first, second]))
        if below(pairs, klass) and rng.random() < 0.5:
            nodes.append((klass, cost(1), some(below(pairs, klass), 1)))
        if rng.random() < 0.4:
            nodes.append((klass, cost(1), [1, *some(early, 1)]))
        nodes += [(some(early, 1)[0], 0.0, [klass]), (some(late, 1)[0], 0.0, [klass])]
        if rng.random() < 0.2:
            nodes.append((some(late, 1)[0], cost(), [klass, *some(pairs, 1)]))
    everything = [*early, *late, *pairs]
    for _ in range(int(rng.integers(0, 3)) if rng.random() < 0.5 else 0):
        nodes.append((some(everything, 1)[0], cost(), some([1, *everything], 2)))
    top = some(late, int(rng.integers(1, 3))) + some(everything, int(rng.random() < 0.2))
    return build([*nodes, (0, 0.0, [1, *top])], 2 + len(everything))


def prepared(problem: ExtractionProblem) -> Reduced:
    for name in ("underivable", "self-loops", "underivable"):
        reduced = REDUCTIONS[name].run(unreduced(problem))
        problem = reduced.problem
    return unreduced(problem)


@settings(max_examples=EXAMPLES, deadline=None)
@given(seed=SEEDS)
def test_an_optimum_is_left(seed: int) -> None:
    before = prepared(two_steps(seed))
    after = drop_detours(before)
    best = brute_force_us(before.problem)
    assert brute_force_us(after.problem) == pytest.approx(best)
    choice = DagDeriver(after.problem).derive(after.problem.cost_us)
    lifted = after.lift(choice)
    assert dag_cost_us(before.problem, lifted) == dag_cost_us(after.problem, choice)


def test_many_of_these_nets_have_detours() -> None:
    fired = 0
    for seed in range(200):
        before = prepared(two_steps(seed))
        fired += drop_detours(before).problem.n_nodes < before.problem.n_nodes
    assert fired > 40


#: Class 1 is the first step's result; 2 and 3 are operators of the first step and of the second,
#: 4 is both computed together.
TOGETHER: list[NodeSpec] = [
    (0, 0.0, [1, 3]),
    (1, 1.0, [2]),
    (1, 1.0, [5]),
    (2, 5.0, []),
    (2, 0.0, [4]),
    (3, 5.0, [1]),
    (3, 0.0, [4]),
    (4, 8.0, [1]),
    (5, 6.0, []),
]


def dropped(nodes: list[NodeSpec]) -> list[int]:
    """Return the e-nodes that are dropped, by their place."""
    problem = build(nodes, 6)
    after = drop_detours(unreduced(problem))
    return sorted(set(range(problem.n_nodes)) - set(after.node_origin.tolist()))


def test_operators_of_two_steps_together_are_a_detour() -> None:
    assert dropped(TOGETHER) == [4, 6, 7]


def test_what_is_still_needed_is_no_detour() -> None:
    costly = [
        (klass, 10.0 if (klass, part) == (2, []) else cost, part) for klass, cost, part in TOGETHER
    ]
    assert dropped(costly) == [4, 6, 7]
    also_root = [(0, 0.0, [1, 2, 3]), *costly[1:]]
    assert dropped(also_root) == []
    assert brute_force_us(build(also_root, 6)) == 15.0  # one by one, 16


def test_what_is_cheaper_together_is_no_detour() -> None:
    cheap = [(*row[:1], 4.0, row[2]) if row[0] == 4 else row for row in TOGETHER]
    assert dropped(cheap) == []


def test_every_class_is_settled_in_the_nets() -> None:
    problem = prepared(two_steps(1)).problem
    choice, _ = settle_by_tree_cost(problem, None)
    assert UNUSED not in choice[: problem.n_classes]
