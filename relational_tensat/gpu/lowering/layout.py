"""Operators that move elements: axes, borders, weights re-arranged. Reshapes are views."""

from __future__ import annotations

import math

from relational_tensat.gpu.calls import Ref, Tensor, Triple
from relational_tensat.gpu.codes import MOVED_TYPES, PAD_MODE_CODES
from relational_tensat.gpu.elements import element_bits, item_bytes
from relational_tensat.gpu.lowering.copying import copy_strided
from relational_tensat.gpu.lowering.emitter import Emitter
from relational_tensat.gpu.strides import broadcast, collapse, contiguous, padded
from relational_tensat.tensor import Attrs, TensorType
from relational_tensat.tensor.operators.attributes import float_of, int_of, ints_of, str_of

_TILE = 32
#: What CUDA allows along y and z of a grid.
_MOST_TILES = 65_535
_RANK = 6


def lower_view(
    emitter: Emitter, op: str, inputs: tuple[Tensor, ...], output: TensorType, attrs: Attrs
) -> Tensor:
    """Lower what gives its operand back, perhaps under another shape: no kernel runs."""
    return Tensor(output, inputs[0].ref)


def lower_transpose(
    emitter: Emitter, op: str, inputs: tuple[Tensor, ...], output: TensorType, attrs: Attrs
) -> Tensor:
    """Lower a transpose: a view where only axes of size 1 move, tiles where the last two change
    places, else a strided copy."""
    (x,) = inputs
    return transposed(emitter, x, ints_of(attrs, "perm"), output)


def transposed(emitter: Emitter, x: Tensor, perm: tuple[int, ...], output: TensorType) -> Tensor:
    """Return ``x`` with its axes in another order."""
    strides = contiguous(x.type.shape)
    source = tuple(strides[axis] for axis in perm)
    sizes, start = collapse(output.shape, source)
    if len(sizes) <= 1:
        return Tensor(output, x.ref)
    result = emitter.tensor(output)
    tiles = _tiles(sizes, start)
    if tiles is None:
        views = (result.ref, contiguous(sizes)), (x.ref, start)
        copy_strided(emitter, item_bytes(output.dtype), sizes, *views)
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


def lower_expand(
    emitter: Emitter, op: str, inputs: tuple[Tensor, ...], output: TensorType, attrs: Attrs
) -> Tensor:
    """Lower a repetition: a copy of a view that stays where it is along repeated axes."""
    (x,) = inputs
    if x.type.size == output.size:
        return Tensor(output, x.ref)
    result = emitter.tensor(output)
    sizes, start = collapse(output.shape, broadcast(x.type.shape, output.shape))
    views = (result.ref, contiguous(sizes)), (x.ref, start)
    copy_strided(emitter, item_bytes(output.dtype), sizes, *views)
    return result


def lower_pad(
    emitter: Emitter, op: str, inputs: tuple[Tensor, ...], output: TensorType, attrs: Attrs
) -> Tensor:
    """Lower a border."""
    (x,) = inputs
    begins = ints_of(attrs, "pads")[: x.type.rank]
    value, mode = float_of(attrs, "value"), str_of(attrs, "mode")
    result = emitter.tensor(output)
    emit_pad(emitter, result, x, begins, mode=mode, value=value)
    return result


def lower_enlarge(
    emitter: Emitter, op: str, inputs: tuple[Tensor, ...], output: TensorType, attrs: Attrs
) -> Tensor:
    """Lower a kernel padded to the size of another, itself in the middle."""
    w = inputs[0]
    begins = tuple(
        (target - size) // 2 for size, target in zip(w.type.shape, output.shape, strict=True)
    )
    result = emitter.tensor(output)
    emit_pad(emitter, result, w, begins)
    return result


def emit_pad(
    emitter: Emitter,
    result: Tensor,
    x: Tensor,
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


def lower_merge(
    emitter: Emitter, op: str, inputs: tuple[Tensor, ...], output: TensorType, attrs: Attrs
) -> Tensor:
    """Lower a grouped convolution's weights for fewer groups: zeros, then the filters' own slots.

    A filter of slot s of its new group has its weights s operands further on, so one strided copy
    places them all.
    """
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
    copy_strided(emitter, size, sizes, (result.ref, to), (w.ref, contiguous(sizes)))
    return result


def moved(ref: Ref, elements: int, dtype: str) -> Ref:
    """Return the place so many elements further on."""
    return Ref(ref.buffer, ref.offset_bytes + elements * item_bytes(dtype))
