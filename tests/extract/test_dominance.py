"""Dominated classes: as a plain search finds them, without comparing everything with everything."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relational_tensat.base.deadline import BudgetSpentError
from relational_tensat.extract import ExtractionProblem
from relational_tensat.extract.exact.reduce.reductions import dominance
from relational_tensat.extract.exact.reduce.reductions.dominance import drop_dominated_classes
from relational_tensat.extract.exact.reduce.smaller_problem import unreduced
from tests.extract.instances import NodeSpec, build
from tests.extract.small_egraphs import egraphs, small_problem


def plainly_dominated(problem: ExtractionProblem) -> list[int]:
    """Return the dominated classes, each tried against every other, in the order of their numbers."""
    owner = problem.node_class.tolist()
    children = [set(problem.children(node).tolist()) for node in range(problem.n_nodes)]
    alive = set(range(problem.n_nodes))
    dominated = []

    def no_dearer(stand_in: int, node: int) -> bool:
        return stand_in in alive and bool(problem.cost_us[stand_in] <= problem.cost_us[node])

    def dominates(other: int, klass: int, users: list[int]) -> bool:
        beside = [
            any(
                owner[node] == owner[user] != other
                and other in children[node]
                and children[node] <= (children[user] - {klass}) | {other}
                and (children[node] - (children[user] - {klass})) == {other}
                and no_dearer(node, user)
                for node in alive
            )
            for user in users
        ]
        derived = [
            any(
                owner[node] == other
                and children[node] <= children[member]
                and no_dearer(node, member)
                for node in alive
            )
            for member in alive
            if owner[member] == klass
        ]
        return all(beside) and all(derived)

    for klass in range(problem.n_classes):
        users = [node for node in sorted(alive) if klass in children[node]]
        others = [other for other in range(problem.n_classes) if other != klass]
        if klass != problem.root and users and any(dominates(k, klass, users) for k in others):
            dominated.append(klass)
            alive -= {*users, *(node for node in alive if owner[node] == klass)}
    return dominated


@settings(max_examples=150, deadline=None)
@given(problem=st.one_of(egraphs(), st.integers(0, 10**9).map(small_problem)))
def test_classes_are_dropped_that_a_plain_search_finds_dominated(
    problem: ExtractionProblem,
) -> None:
    dominated = plainly_dominated(problem)
    dropped = np.isin(problem.node_class, dominated)
    for node in range(problem.n_nodes):
        dropped[node] |= bool(np.isin(problem.children(node), dominated).any())
    search = dominance._Domination(problem, lambda: None)
    assert search.without_dominated().tolist() == (~dropped).tolist()


def hub(spokes: int, *, alike: bool) -> ExtractionProblem:
    """Return a class of many free e-nodes, each for a class of its own over a leaf.

    The leaf is one for all if they are to be alike.
    """
    nodes: list[NodeSpec] = [(0, 0.0, [1])]
    for spoke in range(2, spokes + 2):
        leaf = spokes + 2 + (0 if alike else spoke - 2)
        nodes += [(1, 0.0, [spoke]), (spoke, 1.0, [leaf])]
    n_leaves = 1 if alike else spokes
    nodes += [(spokes + 2 + leaf, 2.0, []) for leaf in range(n_leaves)]
    return build(nodes, spokes + 2 + n_leaves)


@pytest.mark.parametrize("alike", [False, True])
def test_comparisons_grow_with_the_e_graph_and_not_with_its_square(
    alike: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = [0]

    class Counted(frozenset[int]):
        """A set that counts how often it is compared with another, or less another."""

        def __le__(self, other: Any) -> bool:
            compared[0] += 1
            return super().__le__(other)

        def __sub__(self, other: Any) -> Any:
            compared[0] += 1
            return super().__sub__(other)

    monkeypatch.setattr(dominance, "frozenset", Counted, raising=False)
    problem = hub(300, alike=alike)
    left = drop_dominated_classes(unreduced(problem)).problem
    assert left.n_nodes == (4 if alike else problem.n_nodes)
    assert compared[0] < 20 * problem.n_nodes


def test_what_was_found_to_be_dominated_before_the_budget_is_spent_is_dropped() -> None:
    # all but one of ten classes of the same leaf are dominated
    nodes: list[NodeSpec] = [(0, 0.0, [1]), (12, 2.0, [])]
    for klass in range(2, 12):
        nodes += [(1, 0.0, [klass]), (klass, 1.0, [12])]
    readings = itertools.count()

    def check() -> None:
        if next(readings) == 6:
            raise BudgetSpentError("spent")

    left = drop_dominated_classes(unreduced(build(nodes, 13)), check).problem
    assert left.n_classes == 13 - 4  # classes 2 to 5
