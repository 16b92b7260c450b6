"""Operators that reduce along axes, and those that normalize by what they reduce to."""

from __future__ import annotations

import math
from collections.abc import Sequence

from relational_tensat.gpu.calls import Argument, Tensor
from relational_tensat.gpu.codes import REDUCTION_CODES
from relational_tensat.gpu.lowering.emitter import THREADS, Emitter, blocks_for, float_type
from relational_tensat.gpu.lowering.layout import transposed
from relational_tensat.tensor import Attrs, TensorType
from relational_tensat.tensor.operators.attributes import float_of, int_of, ints_of

_WARP = 32
#: By operator, which norm of a sum it is.
_NORMS_OF_SUMS = {"cuda_skip_layer_norm": "layer_norm", "cuda_skip_rms_norm": "rms_norm"}


def lower_reduction(
    emitter: Emitter, op: str, inputs: tuple[Tensor, ...], output: TensorType, attrs: Attrs
) -> Tensor:
    """Lower a reduction: of rows, of columns, or of rows after a transpose that makes them so."""
    (x,) = inputs
    kind = float_type(op, x.type)
    shape, reduced = x.type.shape, set(ints_of(attrs, "axes"))
    runs = _runs(shape, reduced)
    flags = tuple(flag for flag, _ in runs)
    if True not in flags:  # nothing but axes of size 1
        return Tensor(output, x.ref)
    if flags not in ((True,), (False, True), (True, False), (False, True, False)):
        kept_axes = tuple(axis for axis in range(x.type.rank) if axis not in reduced)
        perm = (*kept_axes, *sorted(reduced))
        x = transposed(emitter, x, perm, x.type.with_shape(tuple(shape[axis] for axis in perm)))
        runs = [(False, output.size), (True, x.type.size // output.size)]
    width = next(size for flag, size in runs if flag)
    outer = runs[0][1] if not runs[0][0] else 1
    inner = runs[-1][1] if not runs[-1][0] else 1
    result = emitter.tensor(output)
    common: dict[str, Argument] = {"dst": result.ref, "src": x.ref, "op": REDUCTION_CODES[op]}
    if inner > 1:
        emitter.launch_over(
            f"reduce_columns<{kind}>", outer * inner, **common,
            outer=outer, width=width, inner=inner,
        )  # fmt: skip
    else:
        emitter.launch(
            f"reduce_rows<{kind}>", blocks_for(outer, 1), _threads(width), **common,
            rows=outer, width=width,
        )  # fmt: skip
    return result


def _runs(shape: tuple[int, ...], reduced: set[int]) -> list[tuple[bool, int]]:
    """Return neighbouring axes that share a fate as one: whether reduced, and their size."""
    runs: list[tuple[bool, int]] = []
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        if runs and runs[-1][0] == (axis in reduced):
            runs[-1] = (runs[-1][0], runs[-1][1] * size)
        else:
            runs.append((axis in reduced, size))
    return runs


def lower_softmax(
    emitter: Emitter, op: str, inputs: tuple[Tensor, ...], output: TensorType, attrs: Attrs
) -> Tensor:
    """Lower a softmax along one axis."""
    (x,) = inputs
    axis, shape = int_of(attrs, "axis"), x.type.shape
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    result = emitter.tensor(output)
    emitter.launch(
        f"softmax<{float_type(op, x.type)}>",
        blocks_for(outer * inner, 1),
        _threads(shape[axis]),
        dst=result.ref,
        src=x.ref,
        outer=outer,
        width=shape[axis],
        inner=inner,
    )
    return result


def lower_norm(
    emitter: Emitter, op: str, inputs: tuple[Tensor, ...], output: TensorType, attrs: Attrs
) -> Tensor:
    """Lower layer_norm, with or without bias, and rms_norm."""
    x, *parameters = inputs
    return _emit_norm(emitter, op, (x, None), parameters, attrs)


def lower_skip_norm(
    emitter: Emitter, op: str, inputs: tuple[Tensor, ...], output: TensorType, attrs: Attrs
) -> Tensor:
    """Lower such a norm of the sum of the first two operands."""
    x, skip, *parameters = inputs
    return _emit_norm(emitter, _NORMS_OF_SUMS[op], (x, skip), parameters, attrs)


def _emit_norm(
    emitter: Emitter,
    op: str,
    summands: tuple[Tensor, Tensor | None],
    parameters: Sequence[Tensor],
    attrs: Attrs,
) -> Tensor:
    x, skip = summands
    scale, *biases = parameters
    axis, shape = int_of(attrs, "axis"), x.type.shape
    rows, width = math.prod(shape[:axis]), math.prod(shape[axis:])
    result = emitter.tensor(x.type)
    bias = {"bias": biases[0].ref if biases else None} if op == "layer_norm" else {}
    emitter.launch(
        f"{op}<{float_type(op, x.type)}>",
        blocks_for(rows, 1),
        _threads(width),
        dst=result.ref,
        src=x.ref,
        skip=None if skip is None else skip.ref,
        scale=scale.ref,
        **bias,
        epsilon=float_of(attrs, "epsilon"),
        rows=rows,
        width=width,
    )
    return result


def _threads(width: int) -> tuple[int, int, int]:
    """Return a block of whole warps, no more of them than a row keeps busy."""
    return min(THREADS, math.ceil(width / _WARP) * _WARP), 1, 1
