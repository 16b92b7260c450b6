"""Which class of the graph each class of a window is, at each place where the window stands.

For every place there is a vector: by the id of a class in the windows' e-graph, its id in the
graph's. So the rows of a window become those of all its places by indexing into these vectors.

Height labels become those of the windows, one above the other: at place n (from 0), what is not above a
window's operands keeps its label; what belongs to its first segment is counted from n * step on, and what
belongs to the second from (n + 1) * step on, as it is in the next place. That keeps their order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relational_tensat.explore.strategies.blocks.overlap import Overlap, find_overlap
from relational_tensat.explore.strategies.blocks.partition import Plan
from relational_tensat.explore.strategies.blocks.representative import Representative
from relational_tensat.explore.strategies.blocks.window_rows import SHARED, WindowRows

Ints = NDArray[np.int64]

_MOST_HEIGHT = 2**31 - 1


class TooHigh(Exception):  # noqa: N818  # a control signal, not an error
    """The graph is so deep that height labels do not suffice."""


@dataclass(frozen=True, slots=True, eq=False)
class Copies:
    """Equal windows, each after a window equal to those before the others.

    Attributes:
        kind: of the windows; or ``SHARED``, for what belongs to all windows and is copied once.
        places: their indices, from 0.
        new: the classes that copying makes at each of them.
        overlap: what the window before has of it already.
    """

    kind: int
    places: Ints
    new: Ints
    overlap: Overlap


@dataclass(frozen=True, slots=True, eq=False)
class Images:
    """The images of classes.

    Attributes:
        copies: all that is copied.
        classes: by place and class of the windows' e-graph, the class of the graph; 0 where it has none.
        labels: by class of the graph, the height label; 0 where it is to have none.
        count: how many classes copying makes in all.
    """

    copies: list[Copies]
    classes: Ints
    labels: Ints
    count: int


def find_images(
    plan: Plan, representative: Representative, rows: WindowRows, next_id: int
) -> Images:
    """Return the images of all classes.

    Args:
        next_id: the id of the first class that is made.

    Raises:
        TooHigh: height labels do not suffice for all places.
    """
    shared = _new_classes(rows, SHARED, representative.last)
    classes = np.zeros((len(plan.windows), max(rows.root) + 1), dtype=np.int64)
    classes[:, shared] = next_id + np.arange(len(shared))
    for constant, copy in representative.constants.items():
        classes[:, copy] = constant
    next_class = next_id + len(shared)
    contexts: dict[tuple[int, int], _Context] = {}
    for place, window in enumerate(plan.windows):
        pair = (plan.windows[place - 1].kind if place else SHARED, window.kind)
        if pair not in contexts:
            contexts[pair] = _context(plan, representative, rows, place)
        context = contexts[pair]
        context.places.append(place)
        classes[place, context.common] = classes[place - 1, context.counterparts]
        classes[place, context.new] = next_class + np.arange(len(context.new))
        placed = representative.placed[window.kind]
        classes[place, list(placed.nodes)] = window.part.nodes
        classes[place, list(placed.free)] = window.part.free
        next_class += len(context.new)
    copies = [Copies(SHARED, np.array([0]), shared, Overlap({}, {}))]
    copies += [
        Copies(kind, np.array(context.places), context.new, context.overlap)
        for (_, kind), context in contexts.items()
    ]
    labels = _labels(plan, representative, rows, classes)
    return Images(copies, classes, labels, next_class - next_id)


@dataclass(frozen=True, slots=True, eq=False)
class _Context:
    """A kind of window after another: which of its classes are new, and which are the other's."""

    overlap: Overlap
    new: Ints
    common: Ints
    counterparts: Ints
    places: list[int]


def _context(plan: Plan, representative: Representative, rows: WindowRows, place: int) -> _Context:
    overlap = find_overlap(plan, representative, rows, place)
    node_ids = {row[0] for row in rows.nodes}
    new, common, counterparts = [], [], []
    for class_id in _new_classes(rows, plan.windows[place].kind, representative.last).tolist():
        counterpart = overlap.counterparts.get(class_id)
        if counterpart is None and class_id not in node_ids:
            # its e-node has become equal to another
            counterpart = overlap.same.get(rows.root[class_id])
        if counterpart is None:
            new.append(class_id)
        else:
            common.append(class_id)
            counterparts.append(counterpart)
    arrays = [np.array(ids, dtype=np.int64) for ids in (new, common, counterparts)]
    return _Context(overlap, arrays[0], arrays[1], arrays[2], [])


def _new_classes(rows: WindowRows, kind: int, last: int) -> Ints:
    return np.array(
        [class_id for class_id, owner in rows.owner.items() if owner == kind and class_id > last],
        dtype=np.int64,
    )


def _labels(plan: Plan, representative: Representative, rows: WindowRows, classes: Ints) -> Ints:
    """Return the height label of each class of the graph: of those at several places, the highest.

    Raises:
        TooHigh: labels do not suffice for all places.
    """
    heights = np.zeros(classes.shape[1], dtype=np.int64)
    heights[list(rows.height)] = list(rows.height.values())
    step = int(heights.max()) + 1
    if step * (len(plan.windows) + 2) > _MOST_HEIGHT:
        raise TooHigh
    labels = np.zeros(int(classes.max()) + 1, dtype=np.int64)
    for place, window in enumerate(plan.windows):
        placed = representative.placed[window.kind]
        base = max((rows.height[leaf] for leaf in placed.bases), default=0)
        middle = rows.height[placed.middle]
        own = heights.copy()
        own[heights > base] += place * step - base
        own[heights > middle] += step - (middle - base)
        np.maximum.at(labels, classes[place], own)
    labels[0] = 0
    return labels
