"""The search for cycles among kept e-nodes, and for the e-node that is filtered to break each.

On every cycle, the e-node that leaves its lowest class breaks the height labels. From each such e-node a
walk that never goes below the class it left, and leads back to it, closes a cycle. Of these walks the one
counts whose youngest e-node is oldest, and that e-node is filtered.

Only what lies in strongly connected components is searched: cycles are nowhere else, components are few and
small even where thousands of labels are broken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from relational_tensat.egraph.components import cyclic_components

Ints = NDArray[np.int32]

#: How many classes a search may reach until somebody who wants to end it is heard: some milliseconds.
_CLASSES = 1_024


def cycle_breakers(columns: Mapping[str, Ints], check: Callable[[], None]) -> list[int]:
    """Return the e-nodes without which no cycle is left.

    Args:
        columns: the edges, one entry each: ``enode``, ``class`` and ``child``, and of these two classes
            ``height`` and ``child_height``.
        check: raises where the search is to end.
    """
    edges = _Edges(columns)
    found: list[int] = []
    while youngest := edges.youngest(check):
        found.extend(sorted(youngest))
        edges.drop(youngest)
    return found


class _Edges:
    def __init__(self, columns: Mapping[str, Ints]) -> None:
        self._enode, self._class, self._child, self._height, self._child_height = (
            columns[name] for name in ("enode", "class", "child", "height", "child_height")
        )

    def drop(self, enodes: set[int]) -> None:
        """Forget the edges of e-nodes."""
        self._keep(~np.isin(self._enode, list(enodes)))

    def _keep(self, wanted: NDArray[np.bool_]) -> None:
        self._enode, self._class, self._child, self._height, self._child_height = (
            column[wanted]
            for column in (
                self._enode, self._class, self._child, self._height, self._child_height,
            )
        )  # fmt: skip

    def youngest(self, check: Callable[[], None]) -> set[int]:
        """Return what is filtered of the cycles that there are; forget what is on none."""
        violates = self._child_height >= self._height
        component = cyclic_components(self._class, self._child, violates, check)
        self._keep(component >= 0)
        return self._search(check)

    def _search(self, check: Callable[[], None]) -> set[int]:
        incoming = self._incoming()
        height = dict(zip(self._child.tolist(), self._child_height.tolist(), strict=True))
        youngest: dict[int, int] = {}  # by the e-node that breaks a label
        for goal, starts in self._goals().items():
            back = _ways_back(goal, height, incoming, {child for _, child in starts}, check)
            for enode, child in starts:
                if child in back:
                    way = max(enode, back[child])
                    youngest[enode] = min(way, youngest.get(enode, way))
        return set(youngest.values())

    def _goals(self) -> dict[int, list[tuple[int, int]]]:
        """Return, per class, the (e-node, child) of it that break the labels."""
        violates = self._child_height >= self._height
        columns = (self._class, self._enode, self._child)
        goals: dict[int, list[tuple[int, int]]] = {}
        for goal, enode, child in zip(*(c[violates].tolist() for c in columns), strict=True):
            goals.setdefault(goal, []).append((enode, child))
        return goals

    def _incoming(self) -> dict[int, dict[int, int]]:
        """Return, per class, the classes above it and the oldest e-node of each that has it as a child."""
        incoming: dict[int, dict[int, int]] = {}
        columns = (self._class, self._enode, self._child)
        for above, enode, child in zip(*(column.tolist() for column in columns), strict=True):
            parents = incoming.setdefault(child, {})
            parents[above] = min(enode, parents.get(above, enode))
        return incoming


def _ways_back(
    goal: int,
    height: dict[int, int],
    incoming: dict[int, dict[int, int]],
    wanted: set[int],
    check: Callable[[], None],
) -> dict[int, int]:
    """Return, per class of those wanted, the youngest e-node of the way to ``goal`` where it is oldest.

    A way never goes below ``goal``. Classes without one are missing, others may be there. This is
    Dijkstra's algorithm, with the greatest instead of the sum.
    """
    lowest = height[goal]
    best = {goal: 0}
    missing = set(wanted)
    heap = [(0, goal)]
    steps = 0
    while heap and missing:
        if steps % _CLASSES == 0:
            check()
        steps += 1
        youngest, reached = heappop(heap)
        if youngest > best[reached]:
            continue
        missing.discard(reached)
        for above, enode in incoming.get(reached, {}).items():
            way = max(youngest, enode)
            if height[above] >= lowest and way < best.get(above, way + 1):
                best[above] = way
                heappush(heap, (way, above))
    return {each: best[each] for each in wanted - missing}
