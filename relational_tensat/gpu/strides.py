"""Strides of views: how tensors are walked through, in as few axes as possible.

Strides are in elements, one per axis, the outermost first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from relational_tensat.base.errors import InputError

Strides = tuple[int, ...]


def contiguous(shape: Sequence[int]) -> Strides:
    """Return the strides of a row-major tensor."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def broadcast(shape: Sequence[int], target: Sequence[int]) -> Strides:
    """Return the strides of a row-major tensor repeated to ``target``: 0 along repeated axes."""
    strides = [0] * len(target)
    shift = len(target) - len(shape)
    for axis, (size, stride) in enumerate(zip(shape, contiguous(shape), strict=True)):
        if size != 1:
            strides[shift + axis] = stride
    return tuple(strides)


def collapse(sizes: Sequence[int], *views: Sequence[int]) -> tuple[Strides, ...]:
    """Merge axes that every view walks through as one, and drop those of size 1.

    Returns:
        The new sizes, then each view's new strides; ``()`` for a single element.
    """
    merged: list[list[int]] = []  # per axis: size, then a stride per view
    for size, *strides in zip(sizes, *views, strict=True):
        if size == 1:
            continue
        if merged and all(
            outer == inner * size for outer, inner in zip(merged[-1][1:], strides, strict=True)
        ):
            merged[-1] = [merged[-1][0] * size, *strides]
        else:
            merged.append([size, *strides])
    if not merged:
        return ((), *((),) * len(views))
    return tuple(tuple(column) for column in zip(*merged, strict=True))


def padded(values: Sequence[int], rank: int, default: int) -> Strides:
    """Return ``values`` with ``default`` in front, so that there are ``rank``.

    Raises:
        InputError: there are more.
    """
    if len(values) > rank:
        raise InputError(f"a GPU kernel walks through {rank} axes at most, not {len(values)}")
    return (default,) * (rank - len(values)) + tuple(values)
