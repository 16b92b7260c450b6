"""Tensors as bytes in one piece of memory: elements, strides of views, places of buffers.

Buffers are placed greedily by size: the largest first, each at the lowest address at which no buffer that
lives at the same time lies (Pisarchyk and Lee, "Efficient memory management for deep neural net inference",
2020, section 5.2). So memory is used again as soon as nothing needs what is in it. A view is walked through
in as few axes as possible.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relational_tensat.base.errors import InputError
from relational_tensat.tensor import DTYPE_BYTES, Array, TensorType, numpy_dtype


def encode(array: Any, dtype: str) -> Array:
    """Return an array's elements as bytes, row by row, rounded to ``dtype``.

    bfloat16, which NumPy lacks, rounds to nearest, ties to even.
    """
    if dtype != "bfloat16":
        with np.errstate(over="ignore"):  # what a type cannot hold is infinite there
            held = np.ascontiguousarray(array, dtype=numpy_dtype(dtype))
        return held.reshape(-1).view(np.uint8)
    bits = np.ascontiguousarray(array, dtype=np.float32).reshape(-1).view(np.uint32)
    rounded = (bits + (0x7FFF + ((bits >> 16) & 1))) >> 16
    quiet = np.where(np.isnan(bits.view(np.float32)), (bits >> 16) | 0x40, rounded)
    return quiet.astype(np.uint16).view(np.uint8)


def decode(data: Array, kind: TensorType) -> Array:
    """Return bytes as an array of that type; bfloat16 as float32."""
    if kind.dtype != "bfloat16":
        return data.view(numpy_dtype(kind.dtype)).reshape(kind.shape)
    wide = data.view(np.uint16).astype(np.uint32) << 16
    return wide.view(np.float32).reshape(kind.shape)


def decode_view(data: Array, kind: TensorType, strides: Strides) -> Array:
    """Return the elements that a view walks through, of the bytes from its first to its last."""
    flat = decode(data, kind.with_shape((data.size // item_bytes(kind.dtype),)))
    steps = tuple(stride * flat.itemsize for stride in strides)
    return np.array(np.lib.stride_tricks.as_strided(flat, kind.shape, steps))


def span_bytes(kind: TensorType, strides: Strides) -> int:
    """Return the bytes from a view's first element to its last."""
    last = sum((size - 1) * stride for size, stride in zip(kind.shape, strides, strict=True))
    return (last + 1) * item_bytes(kind.dtype)


def element_bits(value: float, dtype: str) -> int:
    """Return one number's bytes, little-endian, as an integer."""
    return int.from_bytes(encode(np.array([value]), dtype).tobytes(), "little")


def rounded(array: Any, dtype: str) -> Array:
    """Return the numbers that an array becomes in ``dtype``, floats in float64."""
    held = decode(encode(array, dtype), TensorType(dtype, np.shape(array)))
    return held.astype(np.float64) if held.dtype.kind == "f" else held


def item_bytes(dtype: str) -> int:
    """Return the bytes of one element."""
    return DTYPE_BYTES[dtype]


Strides = tuple[int, ...]


def contiguous(shape: Sequence[int]) -> Strides:
    """Return the strides of a row-major tensor."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def broadcast(
    shape: Sequence[int], target: Sequence[int], own: Sequence[int] | None = None
) -> Strides:
    """Return the strides of a tensor repeated to ``target``: 0 along repeated axes.

    Args:
        own: its strides, if it is not row-major.
    """
    strides = [0] * len(target)
    shift = len(target) - len(shape)
    steps = contiguous(shape) if own is None else own
    for axis, (size, stride) in enumerate(zip(shape, steps, strict=True)):
        if size != 1:
            strides[shift + axis] = stride
    return tuple(strides)


def reshaped(shape: Sequence[int], strides: Sequence[int], target: Sequence[int]) -> Strides | None:
    """Return the strides of a view under another shape, None where its elements lie too far apart."""
    sizes, steps = (list(column) for column in collapse(shape, strides))
    left, step, result = 1, 0, []
    for size in reversed(target):
        if size > 1 and left == 1:
            left, step = sizes.pop(), steps.pop()
        if left % size:
            return None
        result.append(step)
        left, step = left // size, step * size
    return tuple(reversed(result))


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


#: Where buffers begin; libraries ask for 256 at most.
ALIGNMENT_BYTES = 256


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A buffer, and the first and last step in which its content is needed."""

    name: str
    nbytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Placement:
    """Where each buffer begins, and how many bytes they take together."""

    offsets: dict[str, int]
    total_bytes: int


def place(lifetimes: Sequence[Lifetime]) -> Placement:
    """Place buffers so that no two that live at the same time overlap."""
    placed: list[tuple[Lifetime, int]] = []
    for lifetime in sorted(lifetimes, key=lambda life: (-life.nbytes, life.first, life.name)):
        placed.append((lifetime, _lowest(lifetime, placed)))
    offsets = {life.name: offset for life, offset in placed}
    total = max((offset + aligned(life.nbytes) for life, offset in placed), default=0)
    return Placement(offsets, total)


def aligned(nbytes: int) -> int:
    """Return the bytes that a buffer occupies: up to where the next one may begin."""
    return -(-nbytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def least_bytes(lifetimes: Sequence[Lifetime]) -> int:
    """Return the most bytes that live in one step: no placement takes fewer."""
    starts = {life.first for life in lifetimes}
    return max(
        (sum(aligned(x.nbytes) for x in lifetimes if x.first <= s <= x.last) for s in starts),
        default=0,
    )


def _lowest(buffer: Lifetime, placed: Sequence[tuple[Lifetime, int]]) -> int:
    """Return the lowest offset at which a buffer meets none that lives when it does."""
    occupied = sorted(
        (offset, offset + aligned(other.nbytes))
        for other, offset in placed
        if other.first <= buffer.last and buffer.first <= other.last
    )
    offset = 0
    for start, end in occupied:
        if start - offset >= aligned(buffer.nbytes):
            break
        offset = max(offset, end)
    return offset
