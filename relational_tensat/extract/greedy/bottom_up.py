"""Greedy from the leaves up: by tree cost, or by the whole set of classes that a class is built from.

Tree-greedy is TENSAT's: the tree cost of an e-node is its own cost plus the tree costs of its children. So
shared work is charged once per use; in deep networks that grows exponentially (TENSAT+MCTS, table 1).
Ties are broken by *rank*: 0 for an e-node that costs more than each of its children, else one more than the
highest rank among those that cost as much. (cost, rank) rises from every child to its user, even if e-nodes
cost nothing, so choosing by it closes no cycle. The order of the computation does not change which e-nodes
are chosen.

With sets (``DagDeriver``), an e-node's cost is what the *union* of its children's sets costs, plus its own;
shared work is charged once. Classes are settled in order of that cost: it never falls on the way up. So a
class depends only on classes that were settled before it. The choice cannot be cyclic, and every e-node is
looked at once (``ocf`` looks at them until nothing moves).

The sets of a deep e-graph grow with the square of its depth. When they outgrow a limit, no more are made.
From there on an e-node costs as much as its costliest child, plus its own: too little, but of a size that
still distinguishes e-nodes, where a sum over children would explode.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from relational_tensat.base.deadline import ASKED_EVERY, Check, unlimited
from relational_tensat.base.errors import NoSolutionError
from relational_tensat.extract.index import children_by_node, parents_by_class
from relational_tensat.extract.problem import UNUSED, ExtractionProblem, Floats, Ints, reachable

TREE_COST_CEILING = 1e300
"""Tree costs above it count as equal: they would overflow, and no longer be comparable."""


def tree_greedy(problem: ExtractionProblem) -> Ints:
    """Return the choice of least tree cost, pruned to what the root needs.

    Classes are settled in order of their tree cost (Knuth's generalisation of Dijkstra), so the
    choice is acyclic even where e-nodes cost nothing.

    Raises:
        NoSolutionError: the root has no acyclic derivation.
    """
    choice, _ = settle_by_tree_cost(problem, problem.root)
    if choice[problem.root] == UNUSED:
        raise NoSolutionError(f"the root class {problem.root} has no acyclic derivation")
    return reachable(problem, choice)


def settle_by_tree_cost(problem: ExtractionProblem, target: int | None) -> tuple[Ints, Floats]:
    """Settle classes up to ``target``, or all, in order of their tree cost.

    Returns:
        Per class, the chosen e-node and the tree cost in µs; ``UNUSED`` and infinite where the
        class has no acyclic derivation, or comes after the target.
    """
    parents = parents_by_class(problem)
    node_class = problem.node_class.tolist()
    missing_count = np.diff(problem.child_ptr).tolist()
    own = np.minimum(problem.cost_us, TREE_COST_CEILING).tolist()
    below = [0.0] * problem.n_nodes
    choice = np.full(problem.n_classes, UNUSED, dtype=np.int32)
    costs = np.full(problem.n_classes, np.inf)
    is_settled = [False] * problem.n_classes
    # An entry is (cost, rank * number of e-nodes + e-node).
    size = problem.n_nodes
    queue = [(own[node], node) for node, count in enumerate(missing_count) if count == 0]
    heapq.heapify(queue)
    while queue:
        cost, place = heapq.heappop(queue)
        rank, node = divmod(place, size)
        klass = node_class[node]
        if is_settled[klass]:
            continue
        is_settled[klass] = True
        choice[klass] = node
        costs[klass] = cost
        if klass == target:
            break
        for parent in parents[klass]:
            below[parent] += cost
            missing_count[parent] -= 1
            if missing_count[parent] == 0:
                total = min(below[parent] + own[parent], TREE_COST_CEILING)
                # The child settled last has the highest (cost, rank) of all.
                level = rank + 1 if total == cost else 0
                heapq.heappush(queue, (total, level * size + parent))
    return choice, costs


MOST_MEMBERS = 128 * 1024 * 1024
"""Members that all sets of one derivation may have together: 512 MiB of them."""


class DagDeriver:
    """Derives choices bottom-up for one e-graph, under any weights of its e-nodes.

    Attributes:
        exact: whether in all derivations so far the sets of all classes fitted.
    """

    def __init__(
        self,
        problem: ExtractionProblem,
        most_members: int | None = None,
        check: Check = unlimited,
    ) -> None:
        self.exact = True
        self._check = check
        self._problem = problem
        self._most_members = MOST_MEMBERS if most_members is None else most_members
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
        problem = self._problem
        choice, _ = self._settle(weights, problem.root)
        if choice[problem.root] == UNUSED:
            raise NoSolutionError(f"the root class {problem.root} has no acyclic derivation")
        return reachable(problem, choice)

    def derivation_costs(self, weights: Floats) -> Floats:
        """Return, per class, the weight of one acyclic derivation.

        It is infinite for underivable classes, and where the sets have outgrown their limit.

        Args:
            weights: per e-node, not negative.
        """
        return self._settle(weights, None)[1]

    def _settle(self, weights: Floats, target: int | None) -> tuple[Ints, Floats]:
        """Settle classes up to ``target``, or all; return the choice and what each class weighs."""
        problem, node_class, children = self._problem, self._node_class, self._children
        weight = weights.tolist()
        missing_count = list(self._arity)
        union = _SetUnion(problem.n_classes, self._most_members)
        choice = np.full(problem.n_classes, UNUSED, dtype=np.int32)
        totals = np.full(problem.n_classes, np.inf)
        is_settled = [False] * problem.n_classes
        # An entry is (weight, rank * number of e-nodes + e-node); of a class, the best so far.
        size = problem.n_nodes
        best: list[tuple[float, int]] = [(np.inf, 0)] * problem.n_classes
        queue = [(weight[node], node) for node, count in enumerate(missing_count) if count == 0]
        heapq.heapify(queue)
        turn = 0
        # The loop is that of tree-greedy; the cost of a class, and the test of an e-node, are not.
        while queue:
            turn += 1
            if turn % ASKED_EVERY == 0:
                self._check()
            total, place = heapq.heappop(queue)
            rank, node = divmod(place, size)
            klass = node_class[node]
            if is_settled[klass]:
                continue
            is_settled[klass] = True
            choice[klass] = node
            union.settle(klass, children[node], weight[node], total)
            if not union.full:
                totals[klass] = total
            if klass == target:
                break
            for parent in self._parents[klass]:
                missing_count[parent] -= 1
                owner = node_class[parent]
                if missing_count[parent] or is_settled[owner]:
                    continue
                # The class settled last is the costliest child, so this is a lower bound.
                if total + weight[parent] > best[owner][0]:
                    continue
                cost = max(union.cost(children[parent]) + weight[parent], total)
                entry = (cost, (rank + 1 if cost == total else 0) * size + parent)
                if entry < best[owner]:
                    best[owner] = entry
                    heapq.heappush(queue, entry)
        self.exact = self.exact and not union.full
        return choice, totals


class _SetUnion:
    """The sets of classes that settled classes are built from, and what unions of them weigh.

    Classes that weigh nothing are left out of the sets: they change no cost.

    Attributes:
        full: whether the sets have outgrown the limit; then a union weighs as its heaviest part.
    """

    def __init__(self, n_classes: int, most_members: int) -> None:
        self.full = False
        self._room = most_members
        self._members: list[Ints | None] = [None] * n_classes
        self._total = [0.0] * n_classes
        self._weight = np.zeros(n_classes)
        self._stamp = np.zeros(n_classes, dtype=np.int32)
        self._round = 0

    def cost(self, children: Sequence[int]) -> float:
        """Return what the union of the sets of these settled classes weighs."""
        if len(children) < 2:
            return self._total[children[0]] if children else 0.0
        if self.full:
            return max([self._total[child] for child in children])
        return self._unite(children)[1]

    def settle(self, klass: int, children: Sequence[int], weight: float, total: float) -> None:
        """Record the set of a class whose e-node of this weight was chosen."""
        self._total[klass] = total
        self._weight[klass] = weight
        if self.full:
            return
        parts = [self._set(children[0])] if len(children) == 1 else self._unite(children)[0]
        if weight > 0:
            parts = [*parts, np.array([klass], dtype=np.int32)]
        members = parts[0] if len(parts) == 1 else (np.concatenate(parts) if parts else _EMPTY)
        if len(parts) > 1:  # else it is the set of another class
            self._room -= len(members)
        self._members[klass] = members
        if self._room < 0:
            self.full = True
            self._members.clear()

    def _set(self, klass: int) -> Ints:
        members = self._members[klass]
        return _EMPTY if members is None else members

    def _unite(self, children: Sequence[int]) -> tuple[list[Ints], float]:
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
