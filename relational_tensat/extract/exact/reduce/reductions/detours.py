"""Classes that do work again for what is over: *detours*.

Steps of a net that come one after the other may be computed together, ``tanh [a b]`` for ``tanh a`` and
``tanh b``, where ``b`` depends on ``r``, and ``r`` on ``tanh a``. That closes no cycle, if ``r`` is derived
in another way than over ``tanh a``. But then ``tanh a`` is of no use any more, and ``tanh b`` alone is
cheaper. No e-node is dominated by another here: the proof takes many together.

Let ``r`` be a class that every choice contains, ``A`` the classes whose derivations all contain ``r``; none
of ``A`` is below ``r`` in any choice. Given are classes ``N`` outside ``A`` ("needed for r only"), classes
``J`` of ``A`` ("detours"), and for each of ``J`` a class outside both that is to take its place. Let
``[P]`` be the classes of ``P`` without ``N``, and of ``J`` their places instead. If

1. every e-node of a class outside of N and J has no child in either, or one in J whose place is this
   class, or the class can be derived from ``[its children]`` by other e-nodes (of classes not in J)
   that together cost no more; except in classes that are below ``r`` in every choice, and ``r``;
2. for every e-node of a class in J, the class's place is in ``[its children]``, or can be derived
   from them in this sense,

then some optimum contains no class of J. Take an optimum, in an order in which children come first
and what is below ``r`` before all else. Below ``r`` there is nothing of J: leave that as it is. Go
through the rest, and leave out what is in N. At a class of J, derive its place unless it is there;
at any other, take its e-node, or what derives it instead. By 1 and 2 all that is needed is there by
then, and each class is paid for by the e-node it had. At the end the root is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from relational_tensat.base.deadline import Check, unlimited
from relational_tensat.extract.exact.reduce.declaration import ReductionStage, reduction
from relational_tensat.extract.exact.reduce.required_classes import (
    dominators,
    members_of,
    node_needs,
    required_classes,
)
from relational_tensat.extract.exact.reduce.smaller_problem import Mask, Reduced, keep
from relational_tensat.extract.index import children_by_node, nodes_by_class, parents_by_class
from relational_tensat.extract.problem import ExtractionProblem
from relational_tensat.extract.techniques import TechniqueGain

_GIVEN_UP_AFTER = 12
"""After so many classes in a row beyond which there is no detour, no more are looked at."""

_DEEPEST = 3
"""So many e-nodes on each other derive a class at most, in place of one e-node."""

_MOST_TRIED = 1_000
"""So many e-nodes are tried at most to derive a class in place of one e-node."""

_RELATIVE_SLACK = 1e-9
"""Sums of costs that differ by less are taken as equal: they may differ by rounding only."""


@reduction(
    "detours",
    "drop classes that do again, with more, what is over by then",
    stage=ReductionStage.PINNED,
    order=10,
    earns_on=TechniqueGain("nasrnn k=1, unfiltered", "e_nodes"),
)
def drop_detours(reduced: Reduced, check: Check = unlimited) -> Reduced:
    """Drop classes that some optimum does without, as the module says.

    The e-graph must have no underivable e-nodes.
    """
    problem = reduced.problem
    required_of = required_classes(problem, check)
    required = _worth_trying(problem, required_of, check)
    if not required:
        return reduced
    search = _Detours(problem, required_of, dominators(problem, check), check)
    without_gain = 0
    for klass in required:
        without_gain = 0 if search.drop_beyond(klass) else without_gain + 1
        if without_gain == _GIVEN_UP_AFTER:
            break
    return keep(reduced, search.nodes())


def _worth_trying(problem: ExtractionProblem, required_of: list[int], check: Check) -> list[int]:
    """Return the classes of every choice that some e-nodes need and these e-nodes' classes do not.

    Those that most such e-nodes need come first.
    """
    required = required_of[problem.root] & ~(1 << problem.root)
    count: Counter[int] = Counter()
    for needs, klass in zip(
        node_needs(problem, required_of, check), problem.node_class, strict=True
    ):
        more = needs & required & ~required_of[klass]
        if more:
            count.update(members_of(more))
    return sorted(count, key=lambda klass: (-count[klass], klass))


class _Detours:
    """Finds detours beyond one class after the other; e-nodes that are dropped are gone."""

    def __init__(
        self,
        problem: ExtractionProblem,
        required_of: list[int],
        above: list[int],
        check: Check,
    ) -> None:
        self._problem, self._required_of, self._above, self._check = (
            problem,
            required_of,
            above,
            check,
        )
        self._children = children_by_node(problem)
        self._members = nodes_by_class(problem)
        self._users = parents_by_class(problem)
        self._owner: list[int] = problem.node_class.tolist()
        self._cost: list[float] = problem.cost_us.tolist()
        self._alive = [True] * problem.n_nodes
        self._left_to_try = 0

    def nodes(self) -> Mask:
        return np.array(self._alive, dtype=np.bool_)

    def drop_beyond(self, required: int) -> int:
        """Drop the detours that depend on a class which every choice contains; return how many."""
        places = self._candidates(required)
        if not places:
            return 0
        proof = self._proof(required, places)
        for klass in proof.places:
            for node in (*self._members[klass], *self._users[klass]):
                self._alive[node] = False
        return len(proof.places)

    def _candidates(self, required: int) -> dict[int, int]:
        """Return classes that depend on one and serve some that do not, each with its likely place.

        The place is a class that depends on it, too, and that the candidate gives for nothing; if
        there are several, one that gives the others for nothing.
        """
        places = {}
        for klass in range(self._problem.n_classes):
            if (
                klass in (required, self._problem.root)
                or not self._required_of[klass] >> required & 1
            ):
                continue
            target_classes = [self._owner[node] for node in self._steps_from(klass)]
            late = [other for other in target_classes if self._required_of[other] >> required & 1]
            for place in late:
                gives = {self._owner[node] for node in self._steps_from(place)} | {place}
                if place not in (klass, self._problem.root) and gives.issuperset(late):
                    places[klass] = place
                    break
        return {klass: place for klass, place in places.items() if place not in places}

    def _steps_from(self, klass: int) -> list[int]:
        """Return the free e-nodes that need this class and no other."""
        return [
            node
            for node in self._users[klass]
            if self._alive[node] and self._cost[node] == 0.0 and len(self._children[node]) == 1
        ]

    def _proof(self, required: int, places: dict[int, int]) -> _Proof:
        """Return what is left of some detours when all that breaks the conditions is taken out."""
        bit = 1 << required
        below = self._required_of[required]  # those are below it in every choice, and so are these:
        is_below = [bool(below >> k & 1 or part & bit) for k, part in enumerate(self._above)]
        needless = {
            klass
            for klass, part in enumerate(self._required_of)
            if not part & bit and not is_below[klass] and klass != self._problem.root
        }
        proof = _Proof(places, needless)
        # Breaches of a condition are looked for at the classes of J, and above the classes claimed to be in
        # N.
        waiting = [
            node for klass in places for node in (*self._members[klass], *self._users[klass])
        ]
        claimed: set[int] = set()
        while waiting and proof.places:
            self._check()
            node = waiting.pop()
            klass = self._owner[node]
            if not self._alive[node] or is_below[klass]:
                continue
            if klass in proof.needless:
                if klass not in claimed:
                    claimed.add(klass)
                    waiting.extend(self._users[klass])
                continue
            for broken in self._repair(node, proof):
                waiting.extend((*self._members[broken], *self._users[broken]))
        return proof

    def _repair(self, node: int, proof: _Proof) -> list[int]:
        """Take out of N or J what makes an e-node break a condition; return these classes.

        The class of the e-node is not in N.
        """
        klass, part = self._owner[node], self._children[node]
        available = proof.representatives(part)
        if klass in proof.places:
            target, broken = proof.places[klass], [klass]
            holds = target in available
        else:
            target = klass
            broken = [child for child in part if child in proof.needless or child in proof.places]
            holds = not broken or any(proof.places.get(child) == klass for child in part)
        # From nothing at all, a whole derivation would have to be as cheap as the e-node alone.
        if holds or (available and self._is_derived(target, available, proof, self._cost[node])):
            return []
        for broken_class in broken:
            proof.needless.discard(broken_class)
            proof.places.pop(broken_class, None)
        return broken

    def _is_derived(self, klass: int, available: set[int], proof: _Proof, cost_us: float) -> bool:
        """Whether a class can be derived from others for no more than this."""
        self._left_to_try = _MOST_TRIED
        limit = cost_us * (1 + _RELATIVE_SLACK)
        return self._derivation(klass, available, proof, limit, _DEEPEST) is not None

    def _derivation(
        self, klass: int, available: set[int], proof: _Proof, limit: float, deepest: int
    ) -> float | None:
        """Return what it costs to derive a class from others, if no more than a limit."""
        for node in self._members[klass]:
            self._left_to_try -= 1
            total = self._cost[node]
            if self._left_to_try < 0 or not self._alive[node] or total > limit:
                continue
            missing = [child for child in self._children[node] if child not in available]
            if missing and deepest == 1:
                continue
            for child in missing:
                below = None
                if child not in proof.places:
                    below = self._derivation(child, available, proof, limit - total, deepest - 1)
                if below is None:
                    break
                total += below
            else:
                return total
        return None


class _Proof:
    """The claim: detours with their places (J), and classes needed for nothing else (N)."""

    def __init__(self, places: dict[int, int], needless: set[int]) -> None:
        self.places = places
        self.needless = needless

    def representatives(self, classes: Sequence[int]) -> set[int]:
        """Return what stands for some classes: not those of N, and the places of those of J."""
        return {self.places.get(klass, klass) for klass in classes if klass not in self.needless}
