"""Reductions that drop *dominated* e-nodes and classes: others can always stand in their place.

``pass_through`` finds more of them: it reaches past classes that only stand between two others.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from relational_tensat.base.deadline import BudgetSpentError, Check, unlimited
from relational_tensat.extract.exact.reduce.declaration import ReductionStage, reduction
from relational_tensat.extract.exact.reduce.smaller_problem import Draft, Reduced, keep
from relational_tensat.extract.index import child_sets, nodes_by_class, parents_by_class
from relational_tensat.extract.problem import ExtractionProblem
from relational_tensat.extract.techniques import TechniqueGain


def drop_dominated(reduced: Reduced) -> Reduced:
    """Drop e-nodes beside which another of the class costs no more and needs no other child."""
    problem = reduced.problem
    cost = problem.cost_us.tolist()
    children = child_sets(problem)
    nodes = np.ones(problem.n_nodes, dtype=np.bool_)
    for members in nodes_by_class(problem):
        if len(members) < 2:
            continue
        by_strength = sorted(members, key=lambda node: (cost[node], len(children[node]), node))
        # An e-node that dominates is cheaper, or costs as much with no more children: it is before.
        kept_by_child: dict[int, list[int]] = {}
        leaf_kept = False
        for node in by_strength:
            needs = children[node]
            dominated = leaf_kept or any(
                children[other] <= needs
                for child in needs
                for other in kept_by_child.get(child, ())
            )
            if dominated:
                nodes[node] = False
            elif needs:
                # A subset of another set contains its own least child, so that finds it.
                kept_by_child.setdefault(min(needs), []).append(node)
            else:
                leaf_kept = True
    return keep(reduced, nodes)


def drop_dominated_classes(reduced: Reduced, check: Check = unlimited) -> Reduced:
    """Drop classes in whose place another class can always stand.

    Class ``b`` dominates class ``a`` if every e-node that needs ``a`` has beside it one that costs
    no more and needs, instead of ``a``, at most ``b``; and every e-node of ``a`` has in ``b`` one
    that costs no more and needs no other class.

    Then a choice that contains ``a`` does as well without. All that needed ``a`` takes ``b`` instead. If
    ``a`` depended on ``b``, that closes no cycle: ``b`` depends on nothing that needed ``a``. If not, let
    ``b`` be derived as ``a`` was: classes that ``a`` depended on do not depend on ``b``, so ``b`` may come
    where ``a`` came, before all who need either.
    """
    search = _Domination(reduced.problem, check)
    nodes = search.without_dominated()
    return keep(reduced, nodes) if not nodes.all() else reduced


class _Domination:
    """Takes dominated classes out one by one; a removed class dominates nothing any more."""

    def __init__(self, problem: ExtractionProblem, check: Check) -> None:
        self._problem = problem
        self._check = check
        self._children = child_sets(problem)
        self._members = nodes_by_class(problem)
        self._users = parents_by_class(problem)
        self._owner = problem.node_class.tolist()
        self._cost = problem.cost_us.tolist()
        self._alive = [True] * problem.n_nodes
        self._needing: dict[tuple[int, int], list[int]] = {}
        for node, part in enumerate(self._children):
            for child in part:
                self._needing.setdefault((self._owner[node], child), []).append(node)
        leaves = [node for node, part in enumerate(self._children) if not part]
        self._leaves = sorted(leaves, key=self._cost.__getitem__)
        self._leaf_costs = [self._cost[node] for node in self._leaves]
        self._cheapest_leaf: dict[int, int] = {}  # by class; a class loses its leaves all at once
        for node in self._leaves:
            self._cheapest_leaf.setdefault(self._owner[node], node)

    def without_dominated(self) -> np.ndarray:
        """Return which e-nodes stay."""
        with suppress(BudgetSpentError):  # each is right without the others
            for klass in range(self._problem.n_classes):
                self._check()
                users = [node for node in self._users[klass] if self._alive[node]]
                if klass != self._problem.root and users and self._is_dominated(klass, users):
                    for node in (*users, *self._members[klass]):
                        self._alive[node] = False
        return np.array(self._alive, dtype=np.bool_)

    def _is_dominated(self, klass: int, users: list[int]) -> bool:
        members = [node for node in self._members[klass] if self._alive[node]]
        visited = {klass}
        for other in self._candidates(klass, users, members):
            if other in visited:
                continue
            visited.add(other)
            if all(self._stands_in(other, klass, user) for user in users) and all(
                self._derives_as_well(other, node) for node in members
            ):
                return True
        return False

    def _candidates(self, klass: int, users: list[int], members: list[int]) -> Iterator[int]:
        """Return what may dominate a class: found beside one of its users, or above its children.

        Both hold what does dominate it; some classes have thousands of e-nodes beside their users, or
        above their children, but few have both. The last comes first: earlier ones may be gone.
        """
        above = min((self._count_above(node), node) for node in members) if members else None
        beside = min((len(self._members[self._owner[user]]), user) for user in users)
        if above is not None and above[0] < beside[0]:
            return self._above_children(above[1])
        return self._beside(klass, beside[1])

    def _count_above(self, node: int) -> int:
        """Return how many e-nodes there are to look at above the children of an e-node."""
        users = [len(self._users[child]) for child in self._children[node]]
        return sum(users) + bisect_right(self._leaf_costs, self._cost[node])

    def _above_children(self, node: int) -> Iterator[int]:
        """Yield the classes with an e-node that costs no more and needs no other class."""
        part, cost = self._children[node], self._cost[node]
        for child in part:
            for user in reversed(self._users[child]):
                if self._alive[user] and self._cost[user] <= cost and self._children[user] <= part:
                    yield self._owner[user]
        for leaf in reversed(self._leaves[: bisect_right(self._leaf_costs, cost)]):
            if self._alive[leaf]:
                yield self._owner[leaf]

    def _beside(self, klass: int, user: int) -> Iterator[int]:
        """Yield what e-nodes beside a user need in the place of a class.

        A user without others beside it, as the root often is, needs no look at its many children.
        """
        beside = [node for node in self._members[self._owner[user]] if node != user]
        shared = self._children[user] - {klass} if beside else frozenset()
        for node in reversed(beside):
            if self._alive[node]:
                extra = self._children[node] - shared
                if len(extra) == 1:
                    yield from extra

    def _stands_in(self, other: int, klass: int, user: int) -> bool:
        """Whether an e-node beside a user needs another class in the place of a class."""
        owner = self._owner[user]
        shared = self._children[user] - {klass}
        return owner != other and any(
            self._alive[node]
            and self._cost[node] <= self._cost[user]
            and self._children[node] - shared == {other}
            for node in self._needing.get((owner, other), ())
        )

    def _derives_as_well(self, other: int, node: int) -> bool:
        """Whether a class has an e-node that is as good as this one."""
        part, cost = self._children[node], self._cost[node]
        leaf = self._cheapest_leaf.get(other)
        if leaf is not None and self._alive[leaf] and self._cost[leaf] <= cost:
            return True
        return any(
            self._alive[stand_in]
            and self._cost[stand_in] <= cost
            and self._children[stand_in] <= part
            for child in part
            for stand_in in self._needing.get((other, child), ())
        )


_GROWTH = 4.0
"""How many times as many e-nodes there may be meanwhile when classes are passed by."""


@reduction(
    "pass-through",
    "reach past classes that only stand between; drop what is dominated then",
    stage=ReductionStage.COSTLY,
    order=30,
    earns_on=TechniqueGain("rings 300", "simplex_iterations"),
)
def pass_through(reduced: Reduced, check: Check = unlimited) -> Reduced:
    """Let free e-nodes reach past classes that only stand between; kept where that shrinks.

    If nothing needs class ``d`` but free e-nodes ``u`` that need nothing else, then a free e-node ``f`` of
    ``d`` that needs only ``q`` is superfluous once the class of every ``u`` has a free e-node that needs
    ``q``: a choice that goes over ``d`` to ``q`` can go to ``q`` at once. The other way round, a choice
    that goes to ``q`` at once may go over ``d``: if ``d`` is not needed otherwise, by ``f``; if it is,
    either by ``f``, or by the e-node chosen for ``d`` without need for ``q``, whichever closes no cycle
    (both do only if there was one before).

    Classes in the middle vanish, and those that serve the same users compare: with the dominated e-nodes
    and classes left out, little is left of the many ways to group operators.
    """
    draft = Draft(reduced)
    waiting = [klass for klass in range(len(draft.members)) if _is_between(draft, klass)]
    limit = _GROWTH * reduced.problem.n_nodes
    for klass in waiting:
        check()
        _pass_by(draft, klass)
        if len(draft.owner) > limit:
            return reduced
    passed = drop_dominated_classes(drop_dominated(draft.finish()), check)
    return passed if passed.problem.n_nodes < reduced.problem.n_nodes else reduced


def _is_between(draft: Draft, klass: int) -> bool:
    """Whether only free e-nodes that need nothing else need a class."""
    return klass != draft.root and all(
        _is_step(draft, user) and draft.owner[user] != draft.root for user in draft.users[klass]
    )


def _is_step(draft: Draft, node: int) -> bool:
    """Whether an e-node is free and needs exactly one class."""
    return draft.cost_us[node] == 0.0 and len(draft.children[node]) == 1


def _pass_by(draft: Draft, klass: int) -> None:
    """Give every user of a class a step to where the class's own steps lead, and drop these."""
    users = [user for user in draft.users[klass] if draft.owner[user] != klass]  # no self-loops
    for node in [node for node in draft.members[klass] if _is_step(draft, node)]:
        (target,) = draft.children[node]
        if target != klass:
            target_owners = {
                draft.owner[user] for user in draft.users[target] if _is_step(draft, user)
            }
            for user in users:
                if draft.owner[user] not in target_owners and draft.owner[user] != target:
                    target_owners.add(draft.owner[user])
                    draft.merge(user, node)
        draft.drop(node)
    if not draft.members[klass]:
        for user in users:
            draft.drop(user)
