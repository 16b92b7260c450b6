"""What two consecutive windows have in common: the second's first segment is the first's second one.

What rules find there they find in both windows, so it is copied from the first alone. It is recognized as
congruence closure would: from the e-nodes of the original graph upwards, an e-node of the second window is
also in the first if that has an e-node of the same signature on the same classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from relational_tensat.explore.strategies.blocks.forms import Part
from relational_tensat.explore.strategies.blocks.found import SHARED, Found
from relational_tensat.explore.strategies.blocks.partition import Plan
from relational_tensat.explore.strategies.blocks.representative import Placed, Representative

#: (signature, classes of the children): of one window there is one e-node with it.
_Key: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Overlap:
    """What a window has in common with the one before it.

    Attributes:
        same: by canonical class of the window, the class of the window before that it is.
        twins: by e-node that is in both, its number in the window before.
    """

    same: dict[int, int]
    twins: dict[int, int]


def find_overlap(plan: Plan, representative: Representative, found: Found, place: int) -> Overlap:
    """Return what the window at a place (from 0) has in common with the one before; at 0, nothing."""
    if place == 0:
        return Overlap({}, {})
    before, window = plan.windows[place - 1], plan.windows[place]
    placed = representative.placed
    there = dict(_images(before.part, placed[before.kind]))
    same = {number: number for number in set(found.root.values()) if found.owner[number] == SHARED}
    for number, here in _images(window.part, placed[window.kind]):
        if number in there:
            same[found.root[here]] = found.root[there[number]]
    known = {_key(row): row for row in found.nodes if found.owner[row[1]] in (before.kind, SHARED)}
    waiting = [row for row in found.nodes if found.owner[row[1]] == window.kind]
    twins: dict[int, int] = {}
    count = -1
    while count < len(twins):
        count = len(twins)
        left = []
        for row in waiting:
            twin = _twin(row, same, known)
            if twin is None:
                left.append(row)
            elif same.setdefault(row[1], twin[1]) == twin[1] and twin[-1] <= row[-1]:
                twins[row[0]] = twin[0]
        waiting = left
    return Overlap(same, twins)


def _images(part: Part, placed: Placed) -> Iterator[tuple[int, int]]:
    yield from zip(part.nodes, placed.nodes, strict=True)
    yield from zip(part.free, placed.free, strict=True)


def _key(row: tuple[Any, ...]) -> _Key:
    return row[2:8]


def _twin(
    row: tuple[Any, ...], same: dict[int, int], known: dict[_Key, tuple[Any, ...]]
) -> tuple[Any, ...] | None:
    children = [same.get(child, -1) if child else 0 for child in row[3:8]]
    return None if -1 in children else known.get((row[2], *children))
