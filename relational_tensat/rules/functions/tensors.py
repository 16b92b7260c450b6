"""Functions of the types of tensors, and of what convolutions make of them."""

from __future__ import annotations

import math

from relational_tensat.base.errors import ShapeError
from relational_tensat.rules.functions.registry import Inapplicable, function
from relational_tensat.rules.functions.values import Ints, place
from relational_tensat.tensor.operators.shapes import broadcast as broadcast_shapes
from relational_tensat.tensor.operators.windows import Padding, output_sizes, resolve_padding
from relational_tensat.tensor.types import TensorType

# --- tensors ---


@function("rank", "tensor")
def _rank(tensor: TensorType) -> int:
    """The number of dimensions."""
    return len(tensor.shape)


@function("shape", "tensor")
def _shape(tensor: TensorType) -> Ints:
    """The list of the dimensions."""
    return tensor.shape


@function("dim", "tensor", "int")
def _dim(tensor: TensorType, axis: int) -> int:
    """The size of a dimension; negative counts from the back."""
    return tensor.shape[place(axis, len(tensor.shape))]


@function("last", "tensor")
def _last(tensor: TensorType) -> int:
    """The last axis: the rank less one."""
    if not tensor.shape:
        raise Inapplicable
    return len(tensor.shape) - 1


@function("size", "tensor")
def _size(tensor: TensorType) -> int:
    """The number of elements."""
    return tensor.size


@function("dtype", "tensor")
def _dtype(tensor: TensorType) -> str:
    """The element type's name."""
    return tensor.dtype


@function("is-float", "tensor")
def _is_float(tensor: TensorType) -> bool:
    """Whether the elements are real numbers."""
    return tensor.is_float


@function("known", "tensor")
def _known(_tensor: TensorType) -> bool:
    """Whether it depends on weights and constants only, as a match has it; in ``worth``, by itself."""
    return True


@function("batch", "tensor")
def _batch(tensor: TensorType) -> Ints:
    """All dimensions but the last two: those over which a matmul repeats."""
    if len(tensor.shape) < 2:
        raise Inapplicable
    return tensor.shape[:-2]


@function("spatial", "tensor")
def _spatial(tensor: TensorType) -> Ints:
    """All dimensions but the first two: image sizes of an operand, kernel sizes of its weights."""
    return tensor.shape[2:]


@function("broadcast", "ints", "ints")
def _broadcast(a: Ints, b: Ints) -> Ints:
    """The shape that two shapes broadcast to, as in NumPy."""
    try:
        return broadcast_shapes("broadcast", a, b)
    except ShapeError:
        raise Inapplicable from None


@function("same-except", "tensor", "tensor", "int")
def _same_except(a: TensorType, b: TensorType, axis: int) -> bool:
    """Whether two shapes have one rank and are equal on all axes but one."""
    at = place(axis, len(a.shape))
    without = (*a.shape[:at], *a.shape[at + 1 :])
    return len(a.shape) == len(b.shape) and without == (*b.shape[:at], *b.shape[at + 1 :])


@function("varies-along", "tensor", "int", "int")
def _varies_along(tensor: TensorType, rank: int, axis: int) -> bool:
    """Whether a tensor that is broadcast to a rank has size 1 on all axes but one."""
    new_axes = rank - len(tensor.shape)
    at = place(axis, rank)
    return new_axes >= 0 and all(
        size == 1 or new_axes + index == at for index, size in enumerate(tensor.shape)
    )


@function("broadcast-dim", "tensor", "int", "int")
def _broadcast_dim(tensor: TensorType, rank: int, axis: int) -> int:
    """The size on an axis of a tensor that is broadcast to a rank: 1 where it lacks the axis."""
    index = place(axis, rank) - (rank - len(tensor.shape))
    return tensor.shape[index] if index >= 0 else 1


@function("source-axis", "ints", "ints", "int")
def _source_axis(before: Ints, after: Ints, axis: int) -> int:
    """The axis that a reshape from one shape to another leaves as it is, and so becomes ``axis``."""
    at = place(axis, len(after))
    inner = math.prod(after[at + 1 :])
    for index, size in enumerate(before):
        if size == after[at] and math.prod(before[index + 1 :]) == inner:
            return index
    raise Inapplicable


@function("constant-along", "tensor", "int", "ints")
def _constant_along(tensor: TensorType, rank: int, axes: Ints) -> bool:
    """Whether a tensor that is broadcast to a rank has size 1 on some axes, or lacks them."""
    new_axes = rank - len(tensor.shape)
    indices = [place(axis, rank) - new_axes for axis in axes]
    return new_axes >= 0 and all(axis < 0 or tensor.shape[axis] == 1 for axis in indices)


# --- convolutions ---


@function("groups", "tensor", "tensor")
def _groups(x: TensorType, w: TensorType) -> int:
    """The groups of a convolution of an operand with weights."""
    if len(x.shape) < 3 or len(w.shape) < 3 or x.shape[1] % w.shape[1]:
        raise Inapplicable
    return x.shape[1] // w.shape[1]


@function("pads", "ints", "ints", "ints", "any", "ints")
def _pads(sizes: Ints, kernel: Ints, stride: Ints, pad: Padding, dilation: Ints) -> Ints:
    """The padding in numbers, begins then ends; of sizes, kernel, stride, pad and dilation."""
    begins, ends = _resolved(sizes, kernel, stride, pad, dilation)
    return (*begins, *ends)


@function("windows", "ints", "ints", "ints", "any", "ints")
def _windows(sizes: Ints, kernel: Ints, stride: Ints, pad: Padding, dilation: Ints) -> Ints:
    """How many windows fit; of sizes, kernel, stride, pad and dilation."""
    pads = _resolved(sizes, kernel, stride, pad, dilation)
    try:
        return output_sizes("windows", sizes, kernel, stride, dilation or (1,) * len(sizes), pads)
    except ShapeError:
        raise Inapplicable from None


@function("enlargeable", "ints", "ints", "ints", "ints", "any", "any", "ints")
def _enlargeable(
    sizes: Ints, small: Ints, large: Ints, stride: Ints, pad: Padding, pad_large: Padding,
    dilation: Ints,
) -> bool:  # fmt: skip
    """Whether a small kernel, zeros around it, has its windows where the large one has them.

    Of sizes, both kernels, stride, both pads and dilation.
    """
    begins, _ = _resolved(sizes, small, stride, pad, dilation)
    begins_large, _ = _resolved(sizes, large, stride, pad_large, dilation)
    steps = dilation or (1,) * len(sizes)
    moved = all(
        inner <= outer and begin + (outer - inner) // 2 * step == begin_large
        for inner, outer, step, begin, begin_large in zip(
            small, large, steps, begins, begins_large, strict=True
        )
    )
    small_windows = _windows(sizes, small, stride, pad, dilation)
    return moved and small_windows == _windows(sizes, large, stride, pad_large, dilation)


def _resolved(
    sizes: Ints, kernel: Ints, stride: Ints, pad: Padding, dilation: Ints
) -> tuple[Ints, Ints]:
    rank = len(sizes)
    if len(kernel) != rank or len(stride) != rank or min(*stride, *kernel, 1) < 1:
        raise Inapplicable
    if len(dilation) not in (0, rank):
        raise Inapplicable
    try:
        return resolve_padding(pad, sizes, kernel, stride, dilation or (1,) * rank)
    except ShapeError:
        raise Inapplicable from None
