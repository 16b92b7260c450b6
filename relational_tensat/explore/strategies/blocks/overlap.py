"""What two consecutive windows have in common: the second's first segment is the first's second one.

What rules find there they find in both windows, so it is copied from the first alone. It is recognized as
congruence closure would: from the e-nodes of the original graph upwards, an e-node of the second window is
also in the first if that has an e-node of the same signature on the same classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from relational_tensat.base.records import record
from relational_tensat.explore.strategies.blocks.forms import Part
from relational_tensat.explore.strategies.blocks.partition import Plan
from relational_tensat.explore.strategies.blocks.representative import Placement, Representative
from relational_tensat.explore.strategies.blocks.window_rows import SHARED, WindowRows

#: (signature, classes of the children): of one window there is one e-node with it.
_Key: TypeAlias = tuple[int, ...]


@record
class Overlap:
    """What a window has in common with the one before it.

    Attributes:
        same: by canonical class of the window, the class of the window before that it is.
        counterparts: by e-node that is in both, its id in the window before.
    """

    same: dict[int, int]
    counterparts: dict[int, int]


def find_overlap(
    plan: Plan, representative: Representative, rows: WindowRows, place: int
) -> Overlap:
    """Return what the window at a place (from 0) has in common with the one before; at 0, nothing."""
    if place == 0:
        return Overlap({}, {})
    before, window = plan.windows[place - 1], plan.windows[place]
    placed = representative.placed
    images_before = dict(_images(before.part, placed[before.kind]))
    same = {node: node for node in set(rows.root.values()) if rows.owner[node] == SHARED}
    for node, image in _images(window.part, placed[window.kind]):
        if node in images_before:
            same[rows.root[image]] = rows.root[images_before[node]]
    rows_by_key = {
        _key(row): row for row in rows.nodes if rows.owner[row[1]] in (before.kind, SHARED)
    }
    waiting = [row for row in rows.nodes if rows.owner[row[1]] == window.kind]
    counterparts: dict[int, int] = {}
    count = -1
    while count < len(counterparts):
        count = len(counterparts)
        unmatched = []
        for row in waiting:
            counterpart = _counterpart(row, same, rows_by_key)
            if counterpart is None:
                unmatched.append(row)
            elif (
                same.setdefault(row[1], counterpart[1]) == counterpart[1]
                and counterpart[-1] <= row[-1]
            ):
                counterparts[row[0]] = counterpart[0]
        waiting = unmatched
    return Overlap(same, counterparts)


def _images(part: Part, placed: Placement) -> Iterator[tuple[int, int]]:
    yield from zip(part.nodes, placed.nodes, strict=True)
    yield from zip(part.free, placed.free, strict=True)


def _key(row: tuple[Any, ...]) -> _Key:
    return row[2:8]


def _counterpart(
    row: tuple[Any, ...], same: dict[int, int], rows_by_key: dict[_Key, tuple[Any, ...]]
) -> tuple[Any, ...] | None:
    children = [same.get(child, -1) if child else 0 for child in row[3:8]]
    return None if -1 in children else rows_by_key.get((row[2], *children))
