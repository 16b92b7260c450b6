"""Classes that another class replaces wherever they are needed."""

from __future__ import annotations

import numpy as np

from relational_tensat.extract.index import children_by_node, nodes_by_class, parents_by_class
from relational_tensat.extract.problem import ExtractionProblem
from relational_tensat.extract.reduced import Reduced, keep
from relational_tensat.extract.timekeeping import Check, unlimited


def drop_dominated_classes(reduced: Reduced, check: Check = unlimited) -> Reduced:
    """Drop classes in whose place another class can always stand.

    Class ``b`` dominates class ``a`` if every e-node that needs ``a`` has beside it one that costs
    no more and needs, instead of ``a``, at most ``b``; and every e-node of ``a`` has in ``b`` one
    that costs no more and needs no other class.

    Then a choice that contains ``a`` does as well without. All that needed ``a`` takes ``b``
    instead. If ``a`` rested on ``b``, that closes no circle: ``b`` rests on nothing that needed
    ``a``. If not, let ``b`` be derived as ``a`` was: what ``a`` rested on does not rest on ``b``,
    so ``b`` may come where ``a`` came, before all who need either.
    """
    search = _Domination(reduced.problem, check)
    nodes = search.without_dominated()
    return keep(reduced, nodes) if not nodes.all() else reduced


class _Domination:
    """Takes dominated classes out one by one; what is gone dominates nothing any more."""

    def __init__(self, problem: ExtractionProblem, check: Check) -> None:
        self._problem = problem
        self._check = check
        self._children = [frozenset(part) for part in children_by_node(problem)]
        self._members = nodes_by_class(problem)
        self._users = parents_by_class(problem)
        self._owner = problem.node_class.tolist()
        self._cost = problem.cost_us.tolist()
        self._alive = [True] * problem.n_nodes
        self._needing: dict[tuple[int, int], list[int]] = {}
        for node, part in enumerate(self._children):
            for child in part:
                self._needing.setdefault((self._owner[node], child), []).append(node)

    def without_dominated(self) -> np.ndarray:
        """Return which e-nodes stay."""
        for klass in range(self._problem.n_classes):
            self._check()
            users = [node for node in self._users[klass] if self._alive[node]]
            if klass != self._problem.root and users and self._is_dominated(klass, users):
                for node in (*users, *self._members[klass]):
                    self._alive[node] = False
        return np.array(self._alive, dtype=np.bool_)

    def _is_dominated(self, klass: int, users: list[int]) -> bool:
        fewest = min(users, key=lambda user: len(self._members[self._owner[user]]))
        return any(
            self._derives_as_well(other, klass)
            and all(self._stands_in(other, klass, user) for user in users)
            for other in self._candidates(klass, fewest)
        )

    def _candidates(self, klass: int, user: int) -> list[int]:
        """Return what e-nodes beside a user need in the place of a class: nothing else can dominate it.

        A user without others beside it, as the root often is, needs no look at its many children.
        """
        beside = [node for node in self._members[self._owner[user]] if node != user]
        rest = self._children[user] - {klass} if beside else frozenset()
        needed = {self._children[node] - rest for node in beside}
        return sorted(
            other for part in needed if len(part) == 1 for other in part if other != klass
        )

    def _stands_in(self, other: int, klass: int, user: int) -> bool:
        """Whether an e-node beside a user needs another class in the place of a class."""
        owner = self._owner[user]
        rest = self._children[user] - {klass}
        return owner != other and any(
            self._alive[node]
            and self._cost[node] <= self._cost[user]
            and self._children[node] - rest == {other}
            for node in self._needing.get((owner, other), ())
        )

    def _derives_as_well(self, other: int, klass: int) -> bool:
        """Whether every e-node of a class has one in another class that is as good."""
        return all(
            any(
                self._alive[stand_in]
                and self._cost[stand_in] <= self._cost[node]
                and self._children[stand_in] <= self._children[node]
                for stand_in in self._members[other]
            )
            for node in self._members[klass]
            if self._alive[node]
        )
