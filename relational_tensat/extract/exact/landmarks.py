"""Landmark cuts: sets of e-nodes of which every choice that contains a class takes one.

For any shape of a zone of classes around class m, an acyclic choice that contains m must enter
it: it takes an e-node of the zone with no child inside. So over those e-nodes the sum of x is at least y of
m. The relaxation gets by with less where many thin ways from m come together again further down and each is
charged only for the widest. Such a zone is the sink side of a minimum cut: follow, from each e-node, the
child that is hardest to derive, with x as the capacity of the e-nodes. (LM-cut, from planning, follows the
costliest child likewise.)

``Scarcity`` says where such a zone may lie: from a class that is chosen down to one of which too little is
chosen. A choice of the relaxation splits a class among several e-nodes. If all of them, each by some child,
sooner or later need one class, that class is needed as much as the class itself. But the rows ask it only
for the widest of the ways. Down from class m, count along each e-node's best child how much of m comes to
class d. If that is more than is chosen of d, a zone that follows these children is a landmark cut that the
point violates, unless something else can enter it.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from relational_tensat.base.deadline import Check, unlimited
from relational_tensat.extract.exact.solve.constraints import Rows, rows_of_lists
from relational_tensat.extract.index import (
    Adjacency,
    children_by_node,
    nodes_by_class,
    strong_components_of_classes,
)
from relational_tensat.extract.problem import ExtractionProblem, Floats
from relational_tensat.extract.techniques import Technique, TechniqueGain, declare

_NOTHING = 1e-6


@dataclass(frozen=True, slots=True)
class Want:
    """A class that wants more of another than is chosen.

    Attributes:
        target: the class.
        toward: per e-node that leads to the scarce one, the child by which it does.
    """

    target: int
    toward: dict[int, int]


class Scarcity:
    """Finds, at a point of the relaxation, which classes want more of which others.

    Args:
        children: per e-node.
        support: per class, its e-nodes that are chosen at all.
        owner: per e-node, its class.
        depth: per class, a number that is not below those of the classes that it needs, but in cycles.
        x: per e-node, how much of it is chosen.
        y: per class, likewise.
    """

    def __init__(
        self,
        children: Adjacency,
        support: Adjacency,
        owner: list[int],
        depth: list[int],
        x: Floats,
        y: Floats,
    ) -> None:
        self._children, self._support, self._owner, self._depth = children, support, owner, depth
        self._x: list[float] = x.tolist()
        self._y: list[float] = y.tolist()
        self._scarce: list[int] = np.flatnonzero((y > _NOTHING) & (y < 1.0 - _NOTHING)).tolist()
        self._users: dict[int, list[int]] = {}
        for nodes in support:
            for node in nodes:
                for child in children[node]:
                    self._users.setdefault(child, []).append(node)

    def wants(self, least: float, check: Check) -> Iterator[Want]:
        """Yield, for each scarce class, the class that wants most of it beyond the chosen part.

        Args:
            least: by how much it must be more.
            check: asked between them.
        """
        for scarce in self._scarce:
            check()
            want = self._want(scarce, least)
            if want is not None:
                yield want

    def _want(self, scarce: int, least: float) -> Want | None:
        share = {scarce: 1.0}  # of a class, how much comes to the scarce one
        toward: dict[int, int] = {}
        target, most = None, self._y[scarce] + least
        for klass in self._above(scarce, share):
            arriving = 0.0
            for node in self._support[klass]:
                child = max(self._children[node], key=lambda k: share.get(k, 0.0), default=None)
                if child in share:
                    toward[node] = child
                    arriving += self._x[node] * share[child]
            share[klass] = min(1.0, arriving / self._y[klass]) if self._y[klass] > _NOTHING else 0.0
            if arriving > most:
                target, most = klass, arriving
        return None if target is None else Want(target, toward)

    def _above(self, scarce: int, share: dict[int, float]) -> Iterator[int]:
        """Yield the classes whose e-nodes need what has a share by then, lower ones first."""
        queued = {scarce}
        queue: list[tuple[int, int]] = []
        klass = scarce
        while True:
            if share[klass] > _NOTHING:
                for node in self._users.get(klass, ()):
                    user = self._owner[node]
                    if user not in queued:
                        queued.add(user)
                        heapq.heappush(queue, (self._depth[user], user))
            if not queue:
                return
            klass = heapq.heappop(queue)[1]
            yield klass


_TINY = 1e-9
_VIOLATION = 1e-3
_LEAST_TARGET = 0.03
"""Classes of which the relaxation chooses less than this are no targets."""

_MAX_LEVELS = 100
_SOURCE = -1

LANDMARKS = declare(
    Technique(
        "landmarks",
        "rows for e-nodes of which one must be taken",
        earns_on=TechniqueGain("zones 100", "simplex_iterations"),
    )
)

SCARCITY = declare(
    Technique(
        "scarcity",
        "landmarks towards classes of which too little is chosen",
        earns_on=TechniqueGain("zones 500", "simplex_iterations"),
    )
)


class LandmarkCuts:
    """Finds landmark cuts of one e-graph that a point violates."""

    def __init__(
        self,
        problem: ExtractionProblem,
        check: Check = unlimited,
        *,
        follows_scarcity: bool = True,
    ) -> None:
        self._problem = problem
        self._check = check
        self._follows_scarcity = follows_scarcity
        self._children = children_by_node(problem)
        self._nodes = nodes_by_class(problem)
        self._owner: list[int] = problem.node_class.tolist()
        self._component = strong_components_of_classes(problem)
        component = np.array(self._component)
        self._is_cyclic = np.bincount(component)[component] > 1

    def violated(self, x: Floats, y: Floats) -> Rows:
        """Return violated cuts, at most two per class that the point chooses.

        Args:
            x: per e-node, how much of it is chosen.
            y: per class, likewise.
        """
        point = _Point(self._problem, self._children, self._nodes, x)
        hardest = point.hardest_children()
        cuts: set[tuple[int, tuple[int, ...]]] = set()
        for target in np.flatnonzero(y > _LEAST_TARGET).tolist():
            self._check()
            demand = float(y[target])
            entering = self._cut(target, demand, point, hardest)
            if entering is None and self._is_cyclic[target]:
                entering = self._cut(target, demand, point, point.hardest_children(target))
            if entering is not None:
                cuts.add((target, tuple(entering)))
        if self._follows_scarcity:
            cuts.update(self._toward_scarce(point, hardest, x, y))
        rows = [
            ([*entering, self._problem.n_nodes + target], [*[1.0] * len(entering), -1.0])
            for target, entering in sorted(cuts)
        ]
        return rows_of_lists(rows, 0.0, np.inf)

    def _toward_scarce(
        self, point: _Point, hardest: dict[int, int], x: Floats, y: Floats
    ) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield violated cuts along e-nodes that lead to classes of which too little is chosen."""
        scarcity = Scarcity(self._children, point.support, self._owner, self._component, x, y)
        for want in scarcity.wants(_VIOLATION, self._check):
            along = {**hardest, **want.toward}
            entering = self._cut(want.target, float(y[want.target]), point, along)
            if entering is not None:
                yield want.target, tuple(entering)

    def _cut(
        self, target: int, demand: float, point: _Point, hardest: dict[int, int]
    ) -> list[int] | None:
        """Return the e-nodes that enter a zone around a class, if too little of them is chosen."""
        network = _Network(target, point, hardest)
        zone: set[int] | None = None
        while zone is None and network.value < demand - _VIOLATION:
            self._check()
            zone = network.augment(demand)
        if zone is None:
            return None
        entering = self._enlarged(zone, point)
        inflow = sum(point.amount[node] for node in entering)
        return entering if demand - inflow > _VIOLATION else None

    def _enlarged(self, zone: set[int], point: _Point) -> list[int]:
        """Pull classes into the zone while that does not make it easier to enter.

        Returns the e-nodes that enter it. The further the zone reaches, the costlier they are. A class
        is looked at again only where more e-nodes enter over it.
        """
        children = self._children
        entering = {
            node for klass in zone for node in self._nodes[klass] if zone.isdisjoint(children[node])
        }
        by_child: dict[int, list[int]] = {}
        for node in sorted(entering):
            for child in children[node]:
                by_child.setdefault(child, []).append(node)
        queue = sorted(by_child)
        queued = set(queue)
        while queue:
            child = heapq.heappop(queue)
            queued.remove(child)
            over = [node for node in by_child[child] if node in entering]
            if not over or not self._is_no_easier(zone, child, over, point):
                continue
            zone.add(child)
            entering.difference_update(over)
            for node in self._nodes[child]:
                if zone.isdisjoint(children[node]):
                    entering.add(node)
                    for below in children[node]:
                        by_child.setdefault(below, []).append(node)
                        if below not in queued:
                            queued.add(below)
                            heapq.heappush(queue, below)
        return sorted(entering)

    def _is_no_easier(self, zone: set[int], klass: int, over: list[int], point: _Point) -> bool:
        """Whether no more enters a zone with a class than without, where these enter over that class."""
        left = sum([point.amount[node] for node in over]) + _TINY
        zone.add(klass)
        for node in point.support[klass]:
            if zone.isdisjoint(self._children[node]):
                left -= point.amount[node]
        zone.remove(klass)
        return left >= 0.0


class _Point:
    """A point of the relaxation, and how much can flow where through what it chooses.

    Attributes:
        amount: per e-node, how much of it is chosen.
        support: per class, its e-nodes that are chosen at all.
    """

    def __init__(
        self,
        problem: ExtractionProblem,
        children: Adjacency,
        nodes: Adjacency,
        x: Floats,
    ) -> None:
        self._problem = problem
        self.amount: list[float] = x.tolist()
        self.support = [[node for node in part if self.amount[node] > _TINY] for part in nodes]
        inner = [node for node in np.flatnonzero(x > _TINY).tolist() if children[node]]
        leaves = [node for node in np.flatnonzero(x > _TINY).tolist() if not children[node]]
        # E-nodes with children come first, as reduceat requires.
        self._inner = inner
        support_nodes = np.array([*inner, *leaves], dtype=np.int64)
        self._x, self._owner = x[support_nodes], problem.node_class[support_nodes]
        sizes = np.array([len(children[node]) for node in inner], dtype=np.int64)
        self._sizes, self._starts = sizes, np.cumsum(sizes) - sizes
        self._flat = np.array([child for node in inner for child in children[node]], dtype=np.int64)

    def hardest_children(self, target: int | None = None) -> dict[int, int]:
        """Return, per chosen e-node with children, the child that least can flow through to.

        Args:
            target: a class that nothing flows through: classes that depend on it are hard to derive.
        """
        if not self._inner:
            return {}
        passable = self._passable(target)[self._flat]
        narrowest = np.minimum.reduceat(passable, self._starts)
        is_hardest = passable == np.repeat(narrowest, self._sizes)
        others = np.where(is_hardest, self._flat, self._problem.n_classes)
        return dict(
            zip(self._inner, np.minimum.reduceat(others, self._starts).tolist(), strict=True)
        )

    def _passable(self, target: int | None) -> Floats:
        """Return, per class, how much flows through, from the leaves up, at the widest."""
        n_classes = self._problem.n_classes
        passable: Floats = np.zeros(n_classes)
        for _ in range(_MAX_LEVELS):
            limit = self._x.copy()
            if len(self._starts):
                narrowest = np.minimum.reduceat(passable[self._flat], self._starts)
                np.minimum(limit[: len(narrowest)], narrowest, out=limit[: len(narrowest)])
            wider = np.minimum(np.bincount(self._owner, limit, minlength=n_classes), 1.0)
            if target is not None:
                wider[target] = 0.0
            if np.abs(wider - passable).max() <= _TINY:
                break
            passable = wider
        return passable


class _Network:
    """The flow towards one class over the e-nodes in the support, each with its hardest child."""

    def __init__(self, target: int, point: _Point, hardest: dict[int, int]) -> None:
        self.value = 0.0
        self._target = target
        self._residual: dict[int, float] = {}
        self._flow: dict[int, float] = {}
        self._arcs: dict[int, list[tuple[int, int]]] = {}
        self._users: dict[int, list[tuple[int, int]]] = {}
        stack = [target]
        reached = {target}
        while stack:
            klass = stack.pop()
            arcs = [(node, hardest.get(node, _SOURCE)) for node in point.support[klass]]
            self._arcs[klass] = arcs
            for node, child in arcs:
                self._residual[node], self._flow[node] = point.amount[node], 0.0
                if child != _SOURCE:
                    self._users.setdefault(child, []).append((node, klass))
                    if child not in reached:
                        reached.add(child)
                        stack.append(child)

    def augment(self, demand: float) -> set[int] | None:
        """Send more flow along one shortest path; without one, return the reached classes.

        The search goes from the target backwards. A path is a list of (e-node, direction).
        """
        predecessor: dict[int, tuple[int, int, int] | None] = {self._target: None}
        queue = deque([self._target])
        while queue:
            klass = queue.popleft()
            for node, child in self._arcs[klass]:
                if self._residual[node] <= _TINY:
                    continue
                if child == _SOURCE:
                    self._send(klass, node, predecessor, demand)
                    return None
                if child not in predecessor:
                    predecessor[child] = (klass, node, 1)
                    queue.append(child)
            for node, user in self._users.get(klass, ()):
                if self._flow[node] > _TINY and user not in predecessor:
                    predecessor[user] = (klass, node, -1)
                    queue.append(user)
        return set(predecessor)

    def _send(
        self,
        klass: int,
        node: int,
        predecessor: dict[int, tuple[int, int, int] | None],
        demand: float,
    ) -> None:
        path = [(node, 1)]
        step = predecessor[klass]
        while step is not None:
            path.append((step[1], step[2]))
            step = predecessor[step[0]]
        amount = min(self._residual[part] if sign > 0 else self._flow[part] for part, sign in path)
        amount = min(amount, demand - self.value)
        for part, sign in path:
            self._residual[part] -= sign * amount
            self._flow[part] += sign * amount
        self.value += amount
