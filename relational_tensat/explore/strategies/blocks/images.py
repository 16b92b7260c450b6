"""Which class of the graph each class of a window is, at each place where the window stands.

For every place there is a vector: by the number of a class in the windows' e-graph, its number in the
graph's. So the rows of a window become those of all its places by indexing into these vectors.

Height labels become those of the windows, one above the other: at place n (from 0), what is not above a
window's operands keeps its label; what belongs to its first segment is counted from n * step on, and what
belongs to the second from (n + 1) * step on, as it is in the next place. That keeps their order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relational_tensat.explore.strategies.blocks.found import SHARED, Found
from relational_tensat.explore.strategies.blocks.overlap import Overlap, find_overlap
from relational_tensat.explore.strategies.blocks.partition import Plan
from relational_tensat.explore.strategies.blocks.representative import Representative

Ints = NDArray[np.int64]

_MOST_HEIGHT = 2**31 - 1


class TooHigh(Exception):  # noqa: N818  # a control signal, not an error
    """The graph is so deep that height labels do not suffice."""


@dataclass(frozen=True, slots=True, eq=False)
class Copies:
    """Equal windows, each after a window equal to those before the others.

    Attributes:
        kind: of the windows; or ``SHARED``, for what belongs to all windows and is copied once.
        places: their numbers, from 0.
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


def find_images(plan: Plan, representative: Representative, found: Found, next_id: int) -> Images:
    """Return the images of all classes.

    Args:
        next_id: the number of the first class that is made.

    Raises:
        TooHigh: height labels do not suffice for all places.
    """
    shared = _new_classes(found, SHARED, representative.last)
    classes = np.zeros((len(plan.windows), max(found.root) + 1), dtype=np.int64)
    classes[:, shared] = next_id + np.arange(len(shared))
    for there, here in representative.constants.items():
        classes[:, here] = there
    following = next_id + len(shared)
    contexts: dict[tuple[int, int], _Context] = {}
    for place, window in enumerate(plan.windows):
        pair = (plan.windows[place - 1].kind if place else SHARED, window.kind)
        if pair not in contexts:
            contexts[pair] = _context(plan, representative, found, place)
        context = contexts[pair]
        context.places.append(place)
        classes[place, context.taken] = classes[place - 1, context.taken_from]
        classes[place, context.new] = following + np.arange(len(context.new))
        placed = representative.placed[window.kind]
        classes[place, list(placed.nodes)] = window.part.nodes
        classes[place, list(placed.free)] = window.part.free
        following += len(context.new)
    copies = [Copies(SHARED, np.array([0]), shared, Overlap({}, {}))]
    copies += [
        Copies(kind, np.array(context.places), context.new, context.overlap)
        for (_, kind), context in contexts.items()
    ]
    labels = _labels(plan, representative, found, classes)
    return Images(copies, classes, labels, following - next_id)


@dataclass(frozen=True, slots=True, eq=False)
class _Context:
    """A kind of window after another: which of its classes are new, and which are the other's."""

    overlap: Overlap
    new: Ints
    taken: Ints
    taken_from: Ints
    places: list[int]


def _context(plan: Plan, representative: Representative, found: Found, place: int) -> _Context:
    overlap = find_overlap(plan, representative, found, place)
    there = {row[0] for row in found.nodes}
    new, taken, taken_from = [], [], []
    for number in _new_classes(found, plan.windows[place].kind, representative.last).tolist():
        source = overlap.twins.get(number)
        if source is None and number not in there:  # its e-node has become equal to another
            source = overlap.same.get(found.root[number])
        if source is None:
            new.append(number)
        else:
            taken.append(number)
            taken_from.append(source)
    arrays = [np.array(each, dtype=np.int64) for each in (new, taken, taken_from)]
    return _Context(overlap, arrays[0], arrays[1], arrays[2], [])


def _new_classes(found: Found, kind: int, last: int) -> Ints:
    return np.array(
        [number for number, owner in found.owner.items() if owner == kind and number > last],
        dtype=np.int64,
    )


def _labels(plan: Plan, representative: Representative, found: Found, classes: Ints) -> Ints:
    """Return the height label of each class of the graph: of those at several places, the highest.

    Raises:
        TooHigh: labels do not suffice for all places.
    """
    heights = np.zeros(classes.shape[1], dtype=np.int64)
    heights[list(found.height)] = list(found.height.values())
    step = int(heights.max()) + 1
    if step * (len(plan.windows) + 2) > _MOST_HEIGHT:
        raise TooHigh
    labels = np.zeros(int(classes.max()) + 1, dtype=np.int64)
    for place, window in enumerate(plan.windows):
        placed = representative.placed[window.kind]
        base = max((found.height[each] for each in placed.bases), default=0)
        middle = found.height[placed.middle]
        own = heights.copy()
        own[heights > base] += place * step - base
        own[heights > middle] += step - (middle - base)
        np.maximum.at(labels, classes[place], own)
    labels[0] = 0
    return labels
