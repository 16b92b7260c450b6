"""Functions of lists of whole numbers, place by place: bounds of slices, widths of borders, axes."""

from __future__ import annotations

from relational_tensat.rules.functions.registry import Inapplicable, function
from relational_tensat.rules.functions.values import Ints
from relational_tensat.rules.functions.values import place as front_place


@function("place", "int", "int")
def _place(index: int, length: int) -> int:
    """An index into that many elements, counted from the front; a negative one is from the back."""
    return front_place(index, length)


@function("scatter", "ints", "ints", "ints")
def _scatter(values: Ints, places: Ints, replacements: Ints) -> Ints:
    """The list with the elements at some places replaced, each by its own replacement."""
    if len(places) != len(replacements):
        raise Inapplicable
    result = list(values)
    for index, value in zip(places, replacements, strict=True):
        result[front_place(index, len(result))] = value
    return tuple(result)


@function("subtract-lists", "ints", "ints")
def _subtract_lists(a: Ints, b: Ints) -> Ints:
    """Two lists of one length, the second subtracted element by element."""
    return tuple(x - y for x, y in _pairs(a, b))


@function("multiply-lists", "ints", "ints")
def _multiply_lists(a: Ints, b: Ints) -> Ints:
    """Two lists of one length, multiplied element by element."""
    return tuple(x * y for x, y in _pairs(a, b))


@function("each-at-most", "ints", "ints")
def _each_at_most(a: Ints, b: Ints) -> bool:
    """Whether each element of a list is at most the one at the same place of another list."""
    return all(x <= y for x, y in _pairs(a, b))


@function("without-zeros", "ints")
def _without_zeros(values: Ints) -> Ints:
    """The elements that are not 0."""
    return tuple(value for value in values if value)


@function("union", "ints", "ints")
def _union(a: Ints, b: Ints) -> Ints:
    """The numbers that are in one of two lists, ascending, each once."""
    return tuple(sorted({*a, *b}))


@function("ranks", "ints")
def _ranks(values: Ints) -> Ints:
    """For each of different numbers, how many of them are smaller."""
    if len(set(values)) != len(values):
        raise Inapplicable
    return tuple(sorted(values).index(value) for value in values)


@function("counts", "ints", "ints", "ints")
def _counts(starts: Ints, ends: Ints, steps: Ints) -> Ints:
    """How many elements slices of these starts, ends and steps take."""
    if len(starts) != len(steps) or any(step < 1 for step in steps):
        raise Inapplicable
    bounds = zip(_pairs(starts, ends), steps, strict=True)
    return tuple(len(range(start, end, step)) for (start, end), step in bounds)


@function("padded-axes", "ints")
def _padded_axes(pads: Ints) -> Ints:
    """The axes on which a list of pads, begins then ends, adds a border."""
    rank = len(pads) // 2
    return tuple(axis for axis in range(rank) if pads[axis] or pads[rank + axis])


def _pairs(a: Ints, b: Ints) -> list[tuple[int, int]]:
    if len(a) != len(b):
        raise Inapplicable
    return list(zip(a, b, strict=True))
