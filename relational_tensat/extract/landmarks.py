"""Landmark cuts: sets of e-nodes of which every choice that contains a class takes one.

Whatever a zone of classes around class m looks like, an acyclic choice that contains m must enter
it: it takes an e-node of the zone with no child inside. So over those e-nodes the sum of x is at
least y of m. The relaxation gets by with less where many thin ways from m come together again
further down and each is charged only for the widest. Such a zone is the sink side of a minimum cut:
follow, from each e-node, the child that is hardest to come by, and x is the capacity of the
e-nodes (LM-cut, from planning, follows the dearest child likewise).
"""

from __future__ import annotations

from collections import deque

import numpy as np

from relational_tensat.extract.index import children_by_node, edge_owner, nodes_by_class
from relational_tensat.extract.problem import ExtractionProblem, Floats
from relational_tensat.extract.solver import Rows, rows_of_lists

_TINY = 1e-9
_VIOLATION = 1e-3
_LEAST_TARGET = 0.03
"""Classes of which the relaxation chooses less than this are no targets."""

_MAX_LEVELS = 100
_SOURCE = -1


class LandmarkCuts:
    """Finds landmark cuts of one e-graph that a point violates."""

    def __init__(self, problem: ExtractionProblem) -> None:
        self._problem = problem
        self._owner = edge_owner(problem.child_ptr)
        self._children = children_by_node(problem)
        self._nodes = nodes_by_class(problem)

    def violated(self, x: Floats, y: Floats) -> Rows:
        """Return violated cuts, at most one per class that the point chooses.

        Args:
            x: per e-node, how much of it is chosen.
            y: per class, likewise.
        """
        hardest = self._hardest_children(x)
        rows: list[tuple[list[int], list[float]]] = []
        for target in np.flatnonzero(y > _LEAST_TARGET).tolist():
            zone = self._zone(target, float(y[target]), x, hardest)
            if zone is None:
                continue
            entering = self._enlarged(zone, x)
            if y[target] - x[entering].sum() > _VIOLATION:
                column = self._problem.n_nodes + target
                rows.append(([*entering, column], [*[1.0] * len(entering), -1.0]))
        return rows_of_lists(rows, 0.0, np.inf)

    def _hardest_children(self, x: Floats) -> dict[int, int]:
        """Return, per e-node in the support, the child that least can flow through to."""
        problem = self._problem
        passable = np.zeros(problem.n_classes)
        for _ in range(_MAX_LEVELS):
            limit = x.copy()
            np.minimum.at(limit, self._owner, passable[problem.child_idx])
            wider = np.minimum(
                np.bincount(problem.node_class, limit, minlength=problem.n_classes), 1.0
            )
            if np.abs(wider - passable).max() <= _TINY:
                break
            passable = wider
        return {
            node: min(self._children[node], key=lambda child: (passable[child], child))
            for node in np.flatnonzero(x > _TINY).tolist()
            if self._children[node]
        }

    def _zone(
        self, target: int, wanted: float, x: Floats, hardest: dict[int, int]
    ) -> set[int] | None:
        """Return the classes from which more flow could reach the target; None if enough does."""
        network = _Network(target, self._nodes, x, hardest)
        while network.value < wanted - _VIOLATION:
            zone = network.augment(wanted)
            if zone is not None:
                return zone
        return None

    def _enlarged(self, zone: set[int], x: Floats) -> list[int]:
        """Pull classes into the zone while that does not make it easier to enter.

        Returns the e-nodes that enter it. The further the zone reaches, the dearer they are.
        """
        entering = {
            node for klass in zone for node in self._nodes[klass] if self._enters(node, zone)
        }
        moved = True
        while moved:
            moved = False
            by_child: dict[int, list[int]] = {}
            for node in sorted(entering):
                for child in self._children[node]:
                    by_child.setdefault(child, []).append(node)
            for child, users in sorted(by_child.items()):
                stopped = [node for node in users if node in entering]
                if not stopped:
                    continue
                zone.add(child)
                opened = [node for node in self._nodes[child] if self._enters(node, zone)]
                if x[opened].sum() <= x[stopped].sum() + _TINY:
                    entering.difference_update(stopped)
                    entering.update(opened)
                    moved = True
                else:
                    zone.remove(child)
        return sorted(entering)

    def _enters(self, node: int, zone: set[int]) -> bool:
        return not any(child in zone for child in self._children[node])


class _Network:
    """The flow towards one class over the e-nodes in the support, each with its hardest child."""

    def __init__(
        self, target: int, nodes: list[list[int]], x: Floats, hardest: dict[int, int]
    ) -> None:
        self.value = 0.0
        self._target = target
        self._left: dict[int, float] = {}
        self._used: dict[int, float] = {}
        self._arcs: dict[int, list[tuple[int, int]]] = {}
        self._users: dict[int, list[tuple[int, int]]] = {}
        stack = [target]
        seen = {target}
        while stack:
            klass = stack.pop()
            arcs = [(node, hardest.get(node, _SOURCE)) for node in nodes[klass] if x[node] > _TINY]
            self._arcs[klass] = arcs
            for node, child in arcs:
                self._left[node], self._used[node] = float(x[node]), 0.0
                if child != _SOURCE:
                    self._users.setdefault(child, []).append((node, klass))
                    if child not in seen:
                        seen.add(child)
                        stack.append(child)

    def augment(self, wanted: float) -> set[int] | None:
        """Send more flow along one shortest way; where there is none, return what was reached.

        The search goes from the target backwards. A way is a list of (e-node, direction).
        """
        came: dict[int, tuple[int, int, int] | None] = {self._target: None}
        queue = deque([self._target])
        while queue:
            klass = queue.popleft()
            for node, child in self._arcs[klass]:
                if self._left[node] <= _TINY:
                    continue
                if child == _SOURCE:
                    self._send(klass, node, came, wanted)
                    return None
                if child not in came:
                    came[child] = (klass, node, 1)
                    queue.append(child)
            for node, user in self._users.get(klass, ()):
                if self._used[node] > _TINY and user not in came:
                    came[user] = (klass, node, -1)
                    queue.append(user)
        return set(came)

    def _send(
        self, klass: int, node: int, came: dict[int, tuple[int, int, int] | None], wanted: float
    ) -> None:
        way = [(node, 1)]
        step = came[klass]
        while step is not None:
            way.append((step[1], step[2]))
            step = came[step[0]]
        amount = min(self._left[part] if sign > 0 else self._used[part] for part, sign in way)
        amount = min(amount, wanted - self.value)
        for part, sign in way:
            self._left[part] -= sign * amount
            self._used[part] += sign * amount
        self.value += amount
