"""Edges between classes as arrays: by place, in lists, and those that may lie on a cycle."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from relational_tensat.egraph.node_hashes import Ints, Places, distinct

#: How often edges that lead to an end are removed: what is left beyond costs little more.
_MOST_ROUNDS = 32


def cyclic_core(
    parent: Ints, child: Ints, suspect: NDArray[np.bool_], check: Callable[[], None]
) -> Places:
    """Return the places of the edges that may lie on a cycle: all that do, and few others.

    They lie below and above edges that every cycle has one of. Of these, what leads to an end or comes
    from one is removed, and again what does so then.

    Args:
        parent, child: the edges of a graph.
        suspect: the edges of which every cycle has one.
        check: raises where the search is to end.
    """
    nodes, above, below = edge_places(parent, child)
    check()
    down = _reachable(above, below, below[suspect], len(nodes), check)
    up = _reachable(below, above, above[suspect], len(nodes), check)
    core = down & up
    inside = np.flatnonzero(core[above] & core[below])
    for _ in range(_MOST_ROUNDS):
        check()
        has_above = np.bincount(below[inside], minlength=len(nodes)) > 0
        has_below = np.bincount(above[inside], minlength=len(nodes)) > 0
        core = has_above & has_below
        edges = core[above[inside]] & core[below[inside]]
        if edges.all():
            break
        inside = inside[edges]
    return inside


def edge_places(parent: Ints, child: Ints) -> tuple[Ints, Places, Places]:
    """Return the nodes of a graph's edges, in order, and the places among them of the edges' ends."""
    nodes, flat = np.unique(np.concatenate([parent, child]), return_inverse=True)
    above, below = np.split(flat, 2)
    return nodes, above, below


def _reachable(
    source: Places, target: Places, start: Places, nodes: int, check: Callable[[], None]
) -> NDArray[np.bool_]:
    """Return which nodes can be reached along edges from ``source`` to ``target``."""
    edges = Adjacency(source, target, nodes)
    reached = np.zeros(nodes, dtype=np.bool_)
    front = distinct(start)
    while len(front):
        check()
        reached[front] = True
        _, following = edges.following(front)
        front = distinct(following[~reached[following]])
    return reached


class Adjacency:
    """The targets of each source, one list after the other (``targets``), and where each begins."""

    def __init__(self, source: Places, target: Places, nodes: int) -> None:
        self.pointer = np.zeros(nodes + 1, dtype=np.intp)
        np.cumsum(np.bincount(source, minlength=nodes), out=self.pointer[1:])
        self.targets = target[np.argsort(source, kind="stable")]

    def following(self, front: Places) -> tuple[Places, Places]:
        """Return the edges from some nodes: their sources and their targets."""
        starts = self.pointer[front]
        counts = self.pointer[front + 1] - starts
        first = np.repeat(starts - np.cumsum(counts) + counts, counts)
        return np.repeat(front, counts), self.targets[first + np.arange(len(first))]
