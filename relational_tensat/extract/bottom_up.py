"""Greedy from the leaves up: every class knows the whole set of classes it is built from.

An e-node's cost is what the *union* of its children's sets costs, plus its own; shared work is
charged once. Classes are settled in order of that cost, which never falls on the way up, so a
class only ever rests on classes settled before it: the choice cannot be cyclic, and every e-node
is looked at once (Algorithm 2 of the TENSAT+MCTS paper looks at them until nothing moves).
"""

from __future__ import annotations

import heapq

import numpy as np

from relational_tensat.errors import NoSolutionError
from relational_tensat.extract.index import children_by_node, parents_by_class
from relational_tensat.extract.problem import (
    UNUSED,
    ExtractionProblem,
    Floats,
    Ints,
    reachable,
)


class DagDeriver:
    """Derives choices bottom-up for one e-graph, under any weights of its e-nodes."""

    def __init__(self, problem: ExtractionProblem) -> None:
        self._problem = problem
        self._parents = parents_by_class(problem)
        self._children = children_by_node(problem)
        self._node_class = problem.node_class.tolist()
        self._arity = np.diff(problem.child_ptr).tolist()

    def derive(self, weights: Floats) -> Ints:
        """Return a choice of small total weight, pruned to what the root needs.

        Args:
            weights: per e-node, not negative; the costs in µs, or those costs discounted.

        Raises:
            NoSolutionError: the root has no acyclic derivation.
        """
        choice, _ = self._settle(weights, self._problem.root)
        return reachable(self._problem, choice)

    def derivation_costs(self, weights: Floats) -> Floats:
        """Return, per class, the weight of one acyclic derivation (infinite where there is none).

        Args:
            weights: per e-node, not negative.
        """
        return self._settle(weights, None)[1]

    def _settle(self, weights: Floats, target: int | None) -> tuple[Ints, Floats]:
        """Settle classes up to ``target``, or all; return the choice and what each class weighs."""
        problem, node_class, children = self._problem, self._node_class, self._children
        weight = weights.tolist()
        missing = list(self._arity)
        union = _SetUnion(problem.n_classes)
        choice = np.full(problem.n_classes, UNUSED, dtype=np.int32)
        best = [np.inf] * problem.n_classes
        totals = np.full(problem.n_classes, np.inf)
        settled = [False] * problem.n_classes
        queue = [(weight[node], node) for node, count in enumerate(missing) if count == 0]
        heapq.heapify(queue)
        while queue:
            total, node = heapq.heappop(queue)
            klass = node_class[node]
            if settled[klass]:
                continue
            settled[klass] = True
            choice[klass] = node
            totals[klass] = total
            if klass == target:
                return choice, totals
            union.settle(klass, children[node], weight[node], total)
            for parent in self._parents[klass]:
                missing[parent] -= 1
                owner = node_class[parent]
                if missing[parent] or settled[owner]:
                    continue
                # The class settled last is the dearest child, so this is a lower bound.
                if total + weight[parent] >= best[owner]:
                    continue
                cost = union.cost(children[parent]) + weight[parent]
                if cost < best[owner]:
                    best[owner] = cost
                    heapq.heappush(queue, (max(cost, total), parent))
        if target is not None:
            raise NoSolutionError(f"the root class {target} has no acyclic derivation")
        return choice, totals


class _SetUnion:
    """The sets of classes that settled classes are built from, and what unions of them weigh.

    Classes that weigh nothing are left out of the sets: they change no cost.
    """

    def __init__(self, n_classes: int) -> None:
        self._members: list[Ints | None] = [None] * n_classes
        self._total = [0.0] * n_classes
        self._weight = np.zeros(n_classes)
        self._stamp = np.zeros(n_classes, dtype=np.int32)
        self._round = 0

    def cost(self, children: list[int]) -> float:
        """Return what the union of the sets of these settled classes weighs."""
        if len(children) < 2:
            return self._total[children[0]] if children else 0.0
        return self._unite(children)[1]

    def settle(self, klass: int, children: list[int], weight: float, total: float) -> None:
        """Record the set of a class whose e-node of this weight was chosen."""
        parts = [self._set(children[0])] if len(children) == 1 else self._unite(children)[0]
        if weight > 0:
            parts = [*parts, np.array([klass], dtype=np.int32)]
        self._members[klass] = parts[0] if len(parts) == 1 else _joined(parts)
        self._total[klass] = total
        self._weight[klass] = weight

    def _set(self, klass: int) -> Ints:
        members = self._members[klass]
        return _EMPTY if members is None else members

    def _unite(self, children: list[int]) -> tuple[list[Ints], float]:
        """Return the union as disjoint parts, and its weight."""
        self._round += 1
        stamp, current = self._stamp, self._round
        # The largest set first: its weight is known, and only the others are summed up.
        by_weight = sorted(children, key=self._total.__getitem__, reverse=True)
        parts: list[Ints] = []
        total = 0.0
        for position, child in enumerate(by_weight):
            members = self._set(child)
            if position == 0:
                total = self._total[child]
            else:
                members = members[stamp[members] != current]
                total += float(self._weight[members].sum())
            if position + 1 < len(by_weight):
                stamp[members] = current
            parts.append(members)
        return parts, total


_EMPTY: Ints = np.empty(0, dtype=np.int32)


def _joined(parts: list[Ints]) -> Ints:
    return np.concatenate(parts) if parts else _EMPTY
