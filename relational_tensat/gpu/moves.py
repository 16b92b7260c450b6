"""Lowering of what moves elements: axes, borders, weights in another order, joins and parts of tensors.

A reshape is a view. So is a part of a tensor that begins where 16 divides the address. Its rows may lie
apart: products, functions of elements and copies read them so; for all others it is copied into one piece.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from relational_tensat.gpu.calls import (
    CallEmitter,
    DeviceTensor,
    LoweredNode,
    Ref,
    Triple,
    strides_of,
)
from relational_tensat.gpu.catalogue import MOVED_TYPES, PAD_MODE_CODES
from relational_tensat.gpu.memory import (
    broadcast,
    collapse,
    contiguous,
    element_bits,
    item_bytes,
    padded,
    reshaped,
)
from relational_tensat.tensor import TensorType
from relational_tensat.tensor.operators.attributes import float_of, int_of, ints_of, str_of

#: Addresses of tensors are multiples of this, also of views.
ALIGNMENT_BYTES = 16


def widest(item_bytes: int, counts: Sequence[int]) -> int:
    """Return the bytes of the largest pieces of elements in which all of ``counts`` are whole."""
    width = item_bytes
    while width < ALIGNMENT_BYTES and all(n * item_bytes % (2 * width) == 0 for n in counts):
        width *= 2
    return width


def _copy_strided(
    emitter: CallEmitter,
    item_bytes: int,
    sizes: Sequence[int],
    dst: tuple[Ref, Sequence[int]],
    src: tuple[Ref, Sequence[int]],
) -> None:
    """Copy between two views of the same sizes, each a place and strides.

    Raises:
        InputError: the views have more axes than the kernel walks through.
    """
    sizes, to, start = collapse(sizes, dst[1], src[1])
    if sizes and to[-1] == start[-1] == 1:  # whole runs: move them as larger elements
        places = [tensor.offset_bytes // item_bytes for tensor in (dst[0], src[0])]
        width = widest(item_bytes, [sizes[-1], *to[:-1], *start[:-1], *places])
        factor, item_bytes = width // item_bytes, width
        sizes = (*sizes[:-1], sizes[-1] // factor)
        to, start = ((*(s // factor for s in tensor[:-1]), 1) for tensor in (to, start))
    count = math.prod(sizes)
    emitter.launch_over(
        f"strided_copy<{MOVED_TYPES[item_bytes]}>",
        count,
        dst=dst[0],
        src=src[0],
        n=count,
        sizes=padded(sizes, _RANK, 1),
        dst_strides=padded(to, _RANK, 0),
        src_strides=padded(start, _RANK, 0),
    )


def in_one_piece(emitter: CallEmitter, x: DeviceTensor) -> DeviceTensor:
    """Return a tensor that is row-major: a copy where it is not."""
    if x.strides is None:
        return x
    result = emitter.tensor(x.type)
    views = (result.ref, contiguous(x.type.shape)), (x.ref, x.strides)
    _copy_strided(emitter, item_bytes(x.type.dtype), x.type.shape, *views)
    return result


def _view(kind: TensorType, ref: Ref, strides: Sequence[int]) -> DeviceTensor:
    """Return a view; row-major ones by no strides."""
    sizes, steps = collapse(kind.shape, strides)
    return DeviceTensor(kind, ref, None if steps == contiguous(sizes) else tuple(strides))


_TILE = 32
#: CUDA's limit along y and z of a grid.
_MOST_TILES = 65_535
_RANK = 6


def lower_view(node: LoweredNode) -> DeviceTensor:
    """Lower what gives its operand back, perhaps under another shape: a view, if its elements allow it."""
    emitter, _, inputs, output, _ = node
    return with_shape(emitter, inputs[0], output)


def with_shape(emitter: CallEmitter, x: DeviceTensor, output: TensorType) -> DeviceTensor:
    """Return a tensor under another shape, copied only where no strides say that."""
    strides = x.strides and reshaped(x.type.shape, x.strides, output.shape)
    if strides is None:
        x = in_one_piece(emitter, x)
    return replace(x, type=output, strides=strides)


def lower_transpose(node: LoweredNode) -> DeviceTensor:
    """Lower a transpose: a view where only axes of size 1 move, tiles where the last two change
    places, else a strided copy."""
    emitter, _, inputs, output, attrs = node
    (x,) = inputs
    return transposed(emitter, x, ints_of(attrs, "perm"), output)


def transposed(
    emitter: CallEmitter, x: DeviceTensor, perm: tuple[int, ...], output: TensorType
) -> DeviceTensor:
    """Return ``x`` with its axes in another order."""
    source = tuple(strides_of(x)[axis] for axis in perm)
    longer = [axis for axis in perm if x.type.shape[axis] > 1]
    if longer == sorted(longer):
        return _view(output, x.ref, source)
    sizes, start = collapse(output.shape, source)
    result = emitter.tensor(output)
    tiles = _tiles(sizes, start)
    if tiles is None:
        views = (result.ref, contiguous(sizes)), (x.ref, start)
        _copy_strided(emitter, item_bytes(output.dtype), sizes, *views)
        return result
    batch, rows, columns = tiles
    emitter.launch(
        f"transpose<{MOVED_TYPES[item_bytes(output.dtype)]}>",
        (math.ceil(columns / _TILE), math.ceil(rows / _TILE), min(batch, _MOST_TILES)),
        (_TILE, 8, 1),
        dst=result.ref,
        src=x.ref,
        batch=batch,
        rows=rows,
        columns=columns,
    )
    return result


def _tiles(sizes: tuple[int, ...], start: tuple[int, ...]) -> Triple | None:
    """Return batch, rows and columns of the operand if just these last two change places."""
    batch = (1,) if len(sizes) == 2 else sizes[:-2]
    columns, rows = sizes[-2:]
    outer = (rows * columns,) if len(sizes) == 3 else ()
    if len(batch) > 1 or start != (*outer, 1, columns) or math.ceil(rows / _TILE) > _MOST_TILES:
        return None
    return batch[0], rows, columns


def lower_expand(node: LoweredNode) -> DeviceTensor:
    """Lower a repetition: a copy of a view that stays where it is along repeated axes."""
    emitter, _, inputs, output, _ = node
    (x,) = inputs
    if x.type.size == output.size:
        return with_shape(emitter, x, output)
    result = emitter.tensor(output)
    sizes, start = collapse(output.shape, broadcast(x.type.shape, output.shape, x.strides))
    whole = result.ref, contiguous(sizes)
    _copy_strided(emitter, item_bytes(output.dtype), sizes, whole, (x.ref, start))
    return result


def lower_pad(node: LoweredNode) -> DeviceTensor:
    """Lower a border."""
    emitter, _, inputs, output, attrs = node
    (x,) = inputs
    begins = ints_of(attrs, "pads")[: x.type.rank]
    value, mode = float_of(attrs, "value"), str_of(attrs, "mode")
    result = emitter.tensor(output)
    _emit_pad(emitter, result, x, begins, mode=mode, value=value)
    return result


def lower_enlarge(node: LoweredNode) -> DeviceTensor:
    """Lower a kernel padded to the size of another, itself in the middle."""
    emitter, _, inputs, output, _ = node
    w = inputs[0]
    begins = tuple(
        (target - size) // 2 for size, target in zip(w.type.shape, output.shape, strict=True)
    )
    result = emitter.tensor(output)
    _emit_pad(emitter, result, w, begins)
    return result


def _emit_pad(
    emitter: CallEmitter,
    result: DeviceTensor,
    x: DeviceTensor,
    begins: tuple[int, ...],
    *,
    mode: str = "constant",
    value: float = 0.0,
) -> None:
    """Add a border around ``x``, so many elements before it along each axis.

    Raises:
        InputError: there are more axes than the kernel walks through.
    """
    dtype = x.type.dtype
    emitter.launch_over(
        f"pad<{MOVED_TYPES[item_bytes(dtype)]}>",
        result.type.size,
        dst=result.ref,
        src=x.ref,
        mode=PAD_MODE_CODES[mode],
        value=element_bits(value, dtype),
        n=result.type.size,
        dst_sizes=padded(result.type.shape, _RANK, 1),
        src_sizes=padded(x.type.shape, _RANK, 1),
        begins=padded(begins, _RANK, 0),
    )


def lower_merge(node: LoweredNode) -> DeviceTensor:
    """Lower a grouped convolution's weights for fewer groups: zeros, then the filters' own slots.

    A filter of slot s of its new group has its weights s operands further on, so one strided copy
    places them all.
    """
    emitter, _, inputs, output, attrs = node
    (w,) = inputs
    count, groups = int_of(attrs, "count"), int_of(attrs, "groups")
    per_group = w.type.shape[0] // groups
    own = math.prod(w.type.shape[1:])
    result, size = emitter.tensor(output), item_bytes(output.dtype)
    emitter.launch_over(
        f"fill<{MOVED_TYPES[size]}>", output.size, dst=result.ref, value=0, n=output.size
    )
    sizes = (groups // count, count, per_group, own)
    row = count * own
    to = (count * per_group * row, per_group * row + own, row, 1)
    _copy_strided(emitter, size, sizes, (result.ref, to), (w.ref, contiguous(sizes)))
    return result


def moved(ref: Ref, elements: int, dtype: str) -> Ref:
    """Return the place so many elements further on."""
    return Ref(ref.buffer, ref.offset_bytes + elements * item_bytes(dtype))


#: Parts that one launch joins or cuts.
_PARTS = 8


def lower_concat(node: LoweredNode) -> DeviceTensor:
    """Lower a join: every part is copied."""
    emitter, _, inputs, output, attrs = node
    if len(inputs) == 1:
        return inputs[0]
    result = emitter.tensor(output)
    _emit_pieces(emitter, "concat", "dst", result, inputs, int_of(attrs, "axis"))
    return result


def lower_split(node: LoweredNode) -> tuple[DeviceTensor, ...]:
    """Lower a cut: views where each part begins where it may, else all are copied by one kernel."""
    emitter, _, inputs, output, attrs = node
    (x,) = inputs
    axis, strides = int_of(attrs, "axis"), strides_of(x)
    starts = [0, *accumulate(part.shape[axis] for part in output)]
    places = [moved(x.ref, start * strides[axis], x.type.dtype) for start in starts[:-1]]
    if not any(place.offset_bytes % ALIGNMENT_BYTES for place in places):
        return tuple(
            _view(part, place, strides) for part, place in zip(output, places, strict=True)
        )
    parts = tuple(emitter.tensor(part) for part in output)
    _emit_pieces(emitter, "split", "src", in_one_piece(emitter, x), parts, axis)
    return parts


def _emit_pieces(
    emitter: CallEmitter,
    kernel: str,
    side: str,
    whole: DeviceTensor,
    parts: tuple[DeviceTensor, ...],
    axis: int,
) -> None:
    """Add the launches that move parts, side by side along an axis, into or out of a whole."""
    outer = math.prod(whole.type.shape[:axis])
    lengths = [math.prod(part.type.shape[axis:]) for part in parts]
    size = item_bytes(whole.type.dtype)
    width = widest(size, lengths)
    ends = [0, *accumulate(length * size // width for length in lengths)]
    for first in range(0, len(parts), _PARTS):
        some, bounds = parts[first : first + _PARTS], ends[first : first + _PARTS + 1]
        spare = _PARTS - len(some)
        taken = bounds[-1] - bounds[0]
        emitter.launch_over(
            f"{kernel}<{MOVED_TYPES[width]}>",
            outer * taken,
            **{side: whole.ref},
            parts=(*(part.ref for part in some), *(None,) * spare),
            outer=outer,
            width=ends[-1],
            first=bounds[0],
            taken=taken,
            ends=(*(end - bounds[0] for end in bounds[1:]), *(taken,) * spare),
        )


def lower_slice(node: LoweredNode) -> DeviceTensor:
    """Lower a slice: a view where it begins where it may and goes forwards, else a strided copy."""
    emitter, _, inputs, output, attrs = node
    (x,) = inputs
    dtype = x.type.dtype
    strides = list(strides_of(x))
    start = 0
    columns = (ints_of(attrs, name) for name in ("axes", "starts", "steps"))
    for axis, first, step in zip(*columns, strict=True):
        start += first * strides[axis]
        strides[axis] *= step
    place = moved(x.ref, start, dtype)
    if min(strides, default=0) >= 0 and place.offset_bytes % ALIGNMENT_BYTES == 0:
        return _view(output, place, strides)
    sizes, view = collapse(output.shape, strides)
    result = emitter.tensor(output)
    _copy_strided(emitter, item_bytes(dtype), sizes, (result.ref, contiguous(sizes)), (place, view))
    return result


def lower_gather(node: LoweredNode) -> DeviceTensor:
    """Lower the taking of named slices."""
    emitter, _, inputs, output, attrs = node
    data, indices = inputs
    axis = int_of(attrs, "axis")
    shape, size = data.type.shape, item_bytes(data.type.dtype)
    inner = math.prod(shape[axis + 1 :])
    width = widest(size, [inner])
    outer, inner = math.prod(shape[:axis]), inner * size // width
    result = emitter.tensor(output)
    emitter.launch_over(
        f"gather<{MOVED_TYPES[width]}>",
        outer * indices.type.size * inner,
        dst=result.ref,
        data=data.ref,
        indices=indices.ref,
        index_bytes=item_bytes(indices.type.dtype),
        outer=outer,
        axis=shape[axis],
        inner=inner,
        count=indices.type.size,
    )
    return result
