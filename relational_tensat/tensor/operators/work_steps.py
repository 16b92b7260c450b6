"""Steps that operators take beside their work on elements: each takes a time, however short it is.

Operators list them among their works (``Operator.works``); a profile says how many of each a device takes
in a second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from relational_tensat.tensor.types import ValueType, tensors_of

#: Elements side by side in memory that are copied at once, or combined with others that lie like these or
#: with one.
STRETCH = "stretch"
#: An element that a transposition copies by itself.
SCATTERED = "scattered"
#: The cost of an element of an operand that is read once more, for another stretch than its first (a bias
#: for each row), and of a stretch of these: they come from a cache, beside the moved bytes.
REREAD, REREAD_STRETCH = "reread", "reread_stretch"
#: One product of a batch.
MATRIX = "matrix"
#: Elements that are normalized together, and such that do not fill the last of a processor's registers.
ROW, RAGGED_ROW = "row", "ragged_row"
#: An element that a convolution of each channel alone reads or writes: it does little else with it.
CHANNELWISE = "channelwise"
#: An element of a matrix that several rows are multiplied by, its first rows left out: it comes slower from
#: main memory than others.
PACKED = "packed"
#: A buffer of sums of 8-bit integers' products, and an element of it that is brought back to 8 bits.
SUMS, REQUANTIZED = "sums", "requantized"
STEPS = frozenset({
    STRETCH, SCATTERED, REREAD, REREAD_STRETCH, MATRIX, ROW, RAGGED_ROW, CHANNELWISE, PACKED, SUMS,
    REQUANTIZED,
})  # fmt: skip

#: Rows of a matrix that come as fast as filters do.
_NEAR_ROWS = 128
#: Floats of a register.
_REGISTER = 8


def matrices(batch: ValueType) -> int:
    """Return how many matrices a tensor is, its last two axes being theirs."""
    (kind,) = tensors_of(batch)
    return math.prod(kind.shape[:-2])


def steps_of_product(left: ValueType, right: ValueType, output: ValueType) -> tuple[str, int]:
    """Return the products of a batch, or the elements of one matrix that several rows are multiplied by."""
    (rows,), (matrix,) = tensors_of(left), tensors_of(right)
    if len(matrix.shape) > 2:
        return MATRIX, matrices(output)
    terms, columns = matrix.shape
    is_row = rows.size == rows.shape[-1]
    return PACKED, 0 if is_row else max(0, terms - _NEAR_ROWS) * columns


def steps_of_broadcast(shape: Sequence[int], *operands: Sequence[int]) -> list[tuple[str, int]]:
    """Return the stretches that a result of operands is computed in that are broadcast to its shape.

    And what is read once more for them. None where the result is one stretch, or has no elements.
    """
    length, has_own = _stretch_of_broadcast(shape, *operands)
    size = math.prod(shape)
    if length >= size:
        return []
    again = [
        size - math.prod(operand) for operand, own in zip(operands, has_own, strict=True) if own
    ]
    steps = [(STRETCH, size // length)]
    if any(again):
        steps += [(REREAD, sum(again)), (REREAD_STRETCH, size // length)]
    return steps


def _stretch_of_broadcast(shape: Sequence[int], *operands: Sequence[int]) -> tuple[int, list[bool]]:
    """Return the length of a stretch, and which operands give another element for each of its elements.

    A stretch goes on as long as each operand gives either another element for each of the result, or one
    for all.
    """
    length, patterns = 1, [False] * len(operands)
    for back, size in enumerate(reversed(shape), start=1):
        if size == 1:
            continue
        own = [len(operand) >= back and operand[-back] != 1 for operand in operands]
        if length > 1 and own != patterns:
            break
        length, patterns = length * size, own
    return length, patterns


def stretches_of_transposition(shape: Sequence[int], perm: Sequence[int]) -> int:
    """Return how many stretches are copied where the last axes stay the last ones; 0 where none does."""
    axes = moved_axes(shape, perm)
    last = max(axis for axis in range(len(shape)) if shape[axis] != 1) if axes else 0
    return 0 if last in axes else math.prod(shape[axis] for axis in axes)


def stretches_of_expansion(shape: Sequence[int], output: Sequence[int]) -> int:
    """Return how many stretches are copied to broadcast a shape to another; 0 for one copy of all.

    The elements behind the last axis that is broadcast are copied to their place. Then each such axis, the
    last one first, is filled by copies of what is there so far, twice as much each time.
    """
    front = (1,) * (len(output) - len(shape)) + tuple(shape)
    stretches = 0
    for axis, (size, copies) in enumerate(zip(front, output, strict=True)):
        if size < copies:
            rows = math.prod(front[:axis])
            is_last = front[axis + 1 :] == tuple(output[axis + 1 :])
            stretches += rows * ((copies - 1).bit_length() + is_last)
    return stretches


def moved_axes(shape: Sequence[int], perm: Sequence[int]) -> list[int]:
    """Return the axes of several elements in their new order, but for those that stay the last."""
    axes = [axis for axis in perm if shape[axis] != 1]
    order = sorted(axes)
    while axes and axes[-1] == order[-1]:
        axes.pop()
        order.pop()
    return axes


def scattered_by(shape: Sequence[int], perm: Sequence[int]) -> int:
    """Return how many elements a transposition copies one by one: more than one axis moves, the last too.

    Axes of size 1 count as moved.
    """
    is_whole = not moved_axes(shape, perm) or stretches_of_transposition(shape, perm)
    return 0 if is_whole or moves_one_axis(perm) else math.prod(shape)


def moves_one_axis(axes: Sequence[int]) -> bool:
    """Return whether all axes but one stay in order."""
    others = ([*axes[:n], *axes[n + 1 :]] for n in range(len(axes)))
    return any(other == sorted(other) for other in others)


def rows_of(shape: Sequence[int], axis: int) -> list[tuple[str, int]]:
    """Return the rows that are the axes from one on, as works."""
    length = math.prod(shape[axis:])
    rows = math.prod(shape[:axis])
    return [(ROW, rows), (RAGGED_ROW, rows if length % _REGISTER else 0)]
