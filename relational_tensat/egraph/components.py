"""Strongly connected components of the few classes that can be on a cycle."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Places = NDArray[np.intp]

#: How many classes are looked at until somebody who wants to end the search is heard.
_VISITS = 1 << 16


def cyclic_components(
    parent: Ints, child: Ints, suspect: NDArray[np.bool_], check: Callable[[], None]
) -> NDArray[np.int64]:
    """Return, per edge, the number of the component that both its ends are in, and -1 if there is none.

    Args:
        parent, child: the edges of a graph.
        suspect: the edges of which every cycle has one: what is not below and above of some of them is
            not looked at.
        check: raises where the search is to end.
    """
    nodes, above, below = numbered(parent, child)
    down = _reached(above, below, below[suspect], len(nodes))
    up = _reached(below, above, above[suspect], len(nodes))
    core = down & up
    inside = np.flatnonzero(core[above] & core[below])
    number = _tarjan(above[inside], below[inside], len(nodes), check)
    component = np.full(len(parent), -1, dtype=np.int64)
    same = number[above[inside]] == number[below[inside]]
    component[inside[same]] = number[above[inside[same]]]
    return component


def numbered(parent: Ints, child: Ints) -> tuple[Ints, Places, Places]:
    """Return the nodes of a graph's edges, in order, and the places among them of the edges' ends."""
    nodes, flat = np.unique(np.concatenate([parent, child]), return_inverse=True)
    above, below = np.split(flat, 2)
    return nodes, above, below


def _reached(source: Places, target: Places, start: Places, nodes: int) -> NDArray[np.bool_]:
    """Return which nodes can be reached along edges from ``source`` to ``target``."""
    edges = Adjacency(source, target, nodes)
    reached = np.zeros(nodes, dtype=np.bool_)
    front = np.unique(start)
    while len(front):
        reached[front] = True
        _, following = edges.following(front)
        front = np.unique(following[~reached[following]])
    return reached


class Adjacency:
    """The targets of each source, one list after the other (``targets``), and where each begins."""

    def __init__(self, source: Places, target: Places, nodes: int) -> None:
        self.pointer = np.zeros(nodes + 1, dtype=np.intp)
        np.cumsum(np.bincount(source, minlength=nodes), out=self.pointer[1:])
        self.targets = target[np.argsort(source, kind="stable")]

    def following(self, front: Places) -> tuple[Places, Places]:
        """Return the edges from some nodes: their sources and their targets."""
        begins = self.pointer[front]
        counts = self.pointer[front + 1] - begins
        first = np.repeat(begins - np.cumsum(counts) + counts, counts)
        return np.repeat(front, counts), self.targets[first + np.arange(len(first))]


def _tarjan(
    source: Places, target: Places, nodes: int, check: Callable[[], None]
) -> NDArray[np.int64]:
    """Return the component of every node that has an edge (Tarjan 1972, without recursion)."""
    edges = Adjacency(source, target, nodes)
    pointer, targets = edges.pointer.tolist(), edges.targets.tolist()
    order = [0] * nodes  # when each was first seen, from 1
    low = [0] * nodes
    component = np.full(nodes, -1, dtype=np.int64)
    waiting: list[int] = []
    seen = components = 0
    for root in np.unique(source).tolist():
        if order[root]:
            continue
        seen += 1
        order[root] = low[root] = seen
        waiting.append(root)
        path = [(root, pointer[root])]
        while path:
            node, at = path.pop()
            if at < pointer[node + 1]:
                path.append((node, at + 1))
                child = targets[at]
                if not order[child]:
                    seen += 1
                    if seen % _VISITS == 0:
                        check()
                    order[child] = low[child] = seen
                    waiting.append(child)
                    path.append((child, pointer[child]))
                elif component[child] < 0:
                    low[node] = min(low[node], order[child])
                continue
            if path:
                above = path[-1][0]
                low[above] = min(low[above], low[node])
            if low[node] == order[node]:
                while True:
                    member = waiting.pop()
                    component[member] = components
                    if member == node:
                        break
                components += 1
    return component
