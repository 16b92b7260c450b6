"""Improving a choice in place: the true worth of a class, given all choices elsewhere.

Bottom-up greedy decides for a class without knowing what else will be there. Given a whole choice, the
price of another e-node is known. It is the cost of its needs that are not there yet, less that of classes
that nothing needs any more without the old one. This is how circuits are mapped to few gates ("exact local
area", begun from "area flow": Mishchenko, Chatterjee and Brayton, *Improvements to Technology Mapping for
LUT-Based FPGAs*, IEEE TCAD 26(2), 2007). Memory is linear in the e-graph.

A choice stays acyclic because every class stands behind the children of its e-node in an order of
all classes. Where another e-node has children that stand behind the class, these and what they depend
on are moved before it, unless they depend on the class itself. The order is recomputed before each pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from relational_tensat.extract.index import Adjacency, children_by_node, nodes_by_class
from relational_tensat.extract.problem import (
    UNUSED,
    ExtractionProblem,
    Floats,
    Ints,
    reachable,
    topological_order,
)

_MOST_PASSES = 6
_WORTHWHILE = 0.001
"""Passes continue as long as each saves at least this fraction of the cost."""

_MOST_MOVED = 100
"""So many classes are moved in the order at most, for one class to have another e-node."""

_LEAST_GAP = 2.0**-20
"""The order's positions are floats: classes do not come closer to each other than this."""

_STEPS_PER_ENODE = 20
"""How many classes a pass may visit, per e-node: where changes reach far, it ends unfinished."""

_ASKED_EVERY = 1000
"""Classes between two questions whether the time is over."""


class Improver:
    """Improves choices of one e-graph.

    Args:
        problem: the e-graph.
        by_tree_cost: per class, its e-node of least tree cost, or ``UNUSED``.
        tree_costs: per class, that cost; infinite without an acyclic derivation.
        exhausted: asked now and then; True ends an improvement with what is there.
    """

    def __init__(
        self,
        problem: ExtractionProblem,
        by_tree_cost: Ints,
        tree_costs: Floats,
        exhausted: Callable[[], bool] | None = None,
    ) -> None:
        self._problem = problem
        self._exhausted = exhausted
        self._children = children_by_node(problem)
        self._members = nodes_by_class(problem)
        self._cost = problem.cost_us.tolist()
        self._by_tree_cost = by_tree_cost
        self._cheap_first: list[int] = np.argsort(tree_costs, kind="stable").tolist()

    def improve(self, choice: Ints) -> Ints:
        """Return a choice that costs no more, pruned to what the root needs.

        Args:
            choice: complete and acyclic from the root.
        """
        current = reachable(self._problem, choice)
        for _ in range(_MOST_PASSES):
            order, complete = self._order(current)
            state = _InPlace(self._problem, self._children, self._cost, complete)
            before, saved = state.cost, self._pass(order, state)
            current = reachable(self._problem, np.array(state.choice, dtype=np.int32))
            if saved <= before * _WORTHWHILE or self._is_over():
                break
        return current

    def spread(self, choice: Ints) -> Ints:
        """Return another choice, by *flow*: users share the cost of shared classes in this choice.

        The flow of a class is the cost of its e-node and the flows of that one's children, over
        the number of its users in the given choice.
        """
        order, complete = self._order(choice)
        position = _Line(order, complete, self._children).position
        users = [0] * self._problem.n_classes
        for klass in topological_order(self._problem, choice):
            for child in self._children[int(choice[klass])]:
                users[child] += 1
        flow = [0.0] * self._problem.n_classes
        for klass in order:
            own_position = position[klass]
            best = np.inf
            for node in self._members[klass]:
                total = self._cost[node]
                for child in self._children[node]:
                    if position[child] >= own_position:
                        break
                    total += flow[child]
                else:
                    if total < best:
                        best = total
                        complete[klass] = node
            flow[klass] = best / max(1, users[klass])
        return reachable(self._problem, np.array(complete, dtype=np.int32))

    def _order(self, choice: Ints) -> tuple[list[int], list[int]]:
        """Return all derivable classes, children first, and an e-node for each.

        Classes that the choice does not need have their e-node of tree-greedy: those depend on each other
        without a cycle, and on needed classes, which depend on nothing else.
        """
        complete: list[int] = np.where(choice == UNUSED, self._by_tree_cost, choice).tolist()
        children = self._children
        is_placed = [False] * self._problem.n_classes
        order: list[int] = []
        for start in self._cheap_first:
            if is_placed[start] or complete[start] == UNUSED:
                continue
            stack = [start]
            while stack:
                klass = stack[-1]
                waiting = [child for child in children[complete[klass]] if not is_placed[child]]
                if waiting:
                    stack.extend(waiting)
                    continue
                stack.pop()
                if not is_placed[klass]:
                    is_placed[klass] = True
                    order.append(klass)
        return order, complete

    def _pass(self, order: list[int], state: _InPlace) -> float:
        """Give every class that is needed its best e-node, one after the other; return the savings."""
        line = _Line(order, state.choice, self._children)
        state.steps_left = _STEPS_PER_ENODE * self._problem.n_nodes
        saved = 0.0
        for index, klass in enumerate(order):
            if state.steps_left < 0 or (index % _ASKED_EVERY == 0 and self._is_over()):
                break
            if not state.users[klass] or len(self._members[klass]) < 2:
                continue
            for node in self._members[klass]:
                if node == state.choice[klass]:
                    continue
                behind = line.behind(klass, self._children[node])
                if behind is None:
                    continue
                gain = state.exchange(klass, node)
                if gain > 0:
                    saved += gain
                    line.move(behind, klass)
        return saved

    def _is_over(self) -> bool:
        return self._exhausted is not None and self._exhausted()


class _Line:
    """An order of all classes in which every class stands behind the children of its e-node.

    Attributes:
        position: per class, where it stands; classes without a derivation stand behind all.
    """

    def __init__(self, order: list[int], choice: list[int], children: Adjacency) -> None:
        self._choice = choice
        self._children = children
        self.position = [float(len(order))] * len(choice)
        for place, klass in enumerate(order):
            self.position[klass] = float(place)
        # Between here and its position there is nobody but those who were moved before it last.
        self._free_from = [place - 1 for place in self.position]

    def behind(self, klass: int, classes: Sequence[int]) -> list[int] | None:
        """Return what must be moved before a class if it is to depend on these classes, in order.

        None if it cannot: they depend on the class themselves, have no derivation, or are too many.
        """
        position, own_position = self.position, self.position[klass]
        stack = [child for child in classes if position[child] >= own_position]
        classes_behind = set(stack)
        while stack:
            lowest = stack.pop()
            if (
                lowest == klass
                or self._choice[lowest] == UNUSED
                or len(classes_behind) > _MOST_MOVED
            ):
                return None
            for child in self._children[self._choice[lowest]]:
                if position[child] >= own_position and child not in classes_behind:
                    classes_behind.add(child)
                    stack.append(child)
        gap = own_position - self._free_from[klass]
        if classes_behind and gap / (len(classes_behind) + 1) < _LEAST_GAP:
            return None
        return sorted(classes_behind, key=position.__getitem__)

    def move(self, classes: Sequence[int], klass: int) -> None:
        """Put what ``behind`` returned before the class."""
        start, own_position = self._free_from[klass], self.position[klass]
        step = (own_position - start) / (len(classes) + 1)
        for index, moved_class in enumerate(classes):
            self._free_from[moved_class] = start + index * step
            self.position[moved_class] = start + (index + 1) * step
            self._free_from[klass] = self.position[moved_class]


class _InPlace:
    """A choice with the number of users that each class has in it.

    Attributes:
        choice: per class, its e-node; of a class that is not needed, the one it would have.
        users: per class, how many chosen e-nodes that are needed have it as a child.
        cost: of all at the beginning, in µs.
        steps_left: how many more classes may be visited.
    """

    def __init__(
        self,
        problem: ExtractionProblem,
        children: Adjacency,
        cost: list[float],
        choice: list[int],
    ) -> None:
        self.choice = choice
        self.users = [0] * problem.n_classes
        self.steps_left = 0
        self._children = children
        self._cost = cost
        self.users[problem.root] = 1
        root_node = choice[problem.root]
        self.cost = cost[root_node] + self._need(children[root_node], [])

    def exchange(self, klass: int, node: int) -> float:
        """Let a needed class have another e-node if that is cheaper; return what is saved."""
        old = self.choice[klass]
        added: list[int] = []
        dropped: list[int] = []
        saved = self._cost[old] - self._cost[node]
        saved -= self._need(self._children[node], added)
        saved += self._release(self._children[old], dropped)
        self.steps_left -= len(added) + len(dropped)
        if saved > 0:
            self.choice[klass] = node
            return saved
        for child in added:
            self.users[child] -= 1
        for child in dropped:
            self.users[child] += 1
        return 0.0

    def _need(self, classes: Sequence[int], trail: list[int]) -> float:
        """Count one more user of these classes, and so on below; return what that costs."""
        return self._count(classes, trail, 1)

    def _release(self, classes: Sequence[int], trail: list[int]) -> float:
        """Count one user less of these classes, and so on below; return what that saves."""
        return self._count(classes, trail, -1)

    def _count(self, classes: Sequence[int], trail: list[int], change: int) -> float:
        """Change the users of these classes, and below those that come in or go; return their cost."""
        users, total = self.users, 0.0
        turning = 1 if change > 0 else 0  # users of a class that has just come in, or gone
        stack = list(classes)
        while stack:
            klass = stack.pop()
            trail.append(klass)
            users[klass] += change
            if users[klass] == turning:
                node = self.choice[klass]
                total += self._cost[node]
                stack.extend(self._children[node])
        return total
