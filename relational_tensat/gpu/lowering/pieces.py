"""Operators that join tensors along an axis, or take parts of them.

A part that lies in one piece in its operand is a view, if it begins where 16 divides the address;
any other is copied.
"""

from __future__ import annotations

import math
from itertools import accumulate

from relational_tensat.gpu.calls import Ref, Tensor
from relational_tensat.gpu.codes import MOVED_TYPES
from relational_tensat.gpu.elements import item_bytes
from relational_tensat.gpu.lowering.copying import ALIGNMENT_BYTES, copy_strided, widest
from relational_tensat.gpu.lowering.emitter import Emitter
from relational_tensat.gpu.lowering.layout import moved
from relational_tensat.gpu.strides import collapse, contiguous
from relational_tensat.tensor import Attrs, TensorType
from relational_tensat.tensor.operators.attributes import int_of, ints_of

#: Parts that one launch joins or cuts.
_PARTS = 8


def lower_concat(
    emitter: Emitter, op: str, inputs: tuple[Tensor, ...], output: TensorType, attrs: Attrs
) -> Tensor:
    """Lower a join: every part is copied."""
    if len(inputs) == 1:
        return inputs[0]
    result = emitter.tensor(output)
    _emit_pieces(emitter, "concat", "dst", result, inputs, int_of(attrs, "axis"))
    return result


def lower_split(
    emitter: Emitter,
    op: str,
    inputs: tuple[Tensor, ...],
    output: tuple[TensorType, ...],
    attrs: Attrs,
) -> tuple[Tensor, ...]:
    """Lower a cut: views where all parts lie in one piece, else all are copied by one kernel."""
    (x,) = inputs
    axis = int_of(attrs, "axis")
    starts = [0, *accumulate(part.size for part in output)]
    places = [moved(x.ref, start, x.type.dtype) for start in starts[:-1]]
    whole = math.prod(x.type.shape[:axis]) == 1
    if whole and not any(place.offset_bytes % ALIGNMENT_BYTES for place in places):
        return tuple(Tensor(part, place) for part, place in zip(output, places, strict=True))
    parts = tuple(emitter.tensor(part) for part in output)
    _emit_pieces(emitter, "split", "src", x, parts, axis)
    return parts


def _emit_pieces(
    emitter: Emitter, kernel: str, side: str, whole: Tensor, parts: tuple[Tensor, ...], axis: int
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


def lower_slice(
    emitter: Emitter, op: str, inputs: tuple[Tensor, ...], output: TensorType, attrs: Attrs
) -> Tensor:
    """Lower a slice: a view where it lies in one piece, else a strided copy."""
    (x,) = inputs
    dtype = x.type.dtype
    strides = list(contiguous(x.type.shape))
    start = 0
    columns = (ints_of(attrs, name) for name in ("axes", "starts", "steps"))
    for axis, first, step in zip(*columns, strict=True):
        start += first * strides[axis]
        strides[axis] *= step
    place: Ref = moved(x.ref, start, dtype)
    sizes, view = collapse(output.shape, strides)
    if view in ((), (1,)) and place.offset_bytes % ALIGNMENT_BYTES == 0:
        return Tensor(output, place)
    result = emitter.tensor(output)
    copy_strided(emitter, item_bytes(dtype), sizes, (result.ref, contiguous(sizes)), (place, view))
    return result


def lower_gather(
    emitter: Emitter, op: str, inputs: tuple[Tensor, ...], output: TensorType, attrs: Attrs
) -> Tensor:
    """Lower the taking of named slices."""
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
