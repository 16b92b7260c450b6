"""Where landmark cuts may lead: from a class that is chosen down to one of which too little is.

A choice of the relaxation splits a class among several e-nodes. Where all of them, each by some child,
sooner or later need one class, that is needed as much as the class itself; but the rows ask it
only for the widest of the ways. Down from class m, count along each e-node's best child how much of m
comes to class d; where that is more than is chosen of d, a zone that follows these children is a
landmark cut that the point violates, unless something else can enter it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from relational_tensat.base.deadline import Check
from relational_tensat.extract.index import Adjacency
from relational_tensat.extract.problem import Floats

_TINY = 1e-6


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
        self._scarce: list[int] = np.flatnonzero((y > _TINY) & (y < 1.0 - _TINY)).tolist()
        self._users: dict[int, list[int]] = {}
        for nodes in support:
            for node in nodes:
                for child in children[node]:
                    self._users.setdefault(child, []).append(node)

    def wants(self, least: float, check: Check) -> Iterator[Want]:
        """Yield, for each scarce class, who wants most of it beyond what is chosen.

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
            share[klass] = min(1.0, arriving / self._y[klass]) if self._y[klass] > _TINY else 0.0
            if arriving > most:
                target, most = klass, arriving
        return None if target is None else Want(target, toward)

    def _above(self, scarce: int, share: dict[int, float]) -> Iterator[int]:
        """Yield the classes whose e-nodes need what has a share by then, lower ones first."""
        queued = {scarce}
        queue: list[tuple[int, int]] = []
        klass = scarce
        while True:
            if share[klass] > _TINY:
                for node in self._users.get(klass, ()):
                    user = self._owner[node]
                    if user not in queued:
                        queued.add(user)
                        heapq.heappush(queue, (self._depth[user], user))
            if not queue:
                return
            klass = heapq.heappop(queue)[1]
            yield klass
