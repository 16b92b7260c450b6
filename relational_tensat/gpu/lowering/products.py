"""Matrix products: batches broadcast, bias and activation fused."""

from __future__ import annotations

import math
from typing import cast

from relational_tensat.gpu.calls import Product, Tensor, Triple
from relational_tensat.gpu.lowering.emitter import Emitter, float_type
from relational_tensat.gpu.strides import broadcast, collapse, contiguous, padded
from relational_tensat.tensor import Attrs, TensorType
from relational_tensat.tensor.operators.attributes import str_of

_BATCH_AXES = 3


def lower_matmul(
    emitter: Emitter, op: str, inputs: tuple[Tensor, ...], output: TensorType, attrs: Attrs
) -> Tensor:
    """Lower a product; where all products of a batch share B, it is one of more rows."""
    a, b, *bias = inputs
    float_type(op, output)
    batch, m, n, k = output.shape[:-2], output.shape[-2], output.shape[-1], a.type.shape[-1]
    a_view = _batch_strides(a.type, batch)
    b_view = _batch_strides(b.type, batch)
    bias_view = broadcast(bias[0].type.shape, output.shape) if bias else (0,) * output.rank
    *bias_batch, bias_row, bias_column = bias_view
    rows = _joined_rows(batch, m, a_view, b_view, bias_view, k)
    if rows is not None:
        m, bias_row = rows
        batch, a_view, b_view, bias_batch = (), (), (), []
    batch, a_view, b_view, bias_tuple = collapse(batch, a_view, b_view, bias_batch)
    result = emitter.tensor(output)
    emitter.calls.append(
        Product(
            c=result.ref,
            a=a.ref,
            b=b.ref,
            bias=bias[0].ref if bias else None,
            dtype=output.dtype,
            math=emitter.math,
            m=m,
            n=n,
            k=k,
            batches=_triple(batch, 1),
            a_strides=_triple(a_view, 0),
            b_strides=_triple(b_view, 0),
            bias_strides=(*_triple(bias_tuple, 0), bias_row, bias_column),
            act=str_of(attrs, "act"),
        )
    )
    return result


def _batch_strides(kind: TensorType, batch: tuple[int, ...]) -> tuple[int, ...]:
    """Return how far matrices are apart along the result's batch axes; 0 where repeated."""
    matrix = kind.shape[-2] * kind.shape[-1]
    return tuple(stride * matrix for stride in broadcast(kind.shape[:-2], batch))


def _joined_rows(
    batch: tuple[int, ...],
    m: int,
    a_view: tuple[int, ...],
    b_view: tuple[int, ...],
    bias_view: tuple[int, ...],
    k: int,
) -> tuple[int, int] | None:
    """Return the rows, and the bias's stride along them, of one product in place of a batch."""
    sizes, a_left = collapse(batch, a_view)  # a batch axis of size 1 may have any stride
    if any(b_view) or a_left != tuple(step * m * k for step in contiguous(sizes)):
        return None
    sizes, rows = collapse((*batch, m), bias_view[:-1])
    if len(sizes) > 1:
        return None
    return math.prod(batch) * m, rows[0] if rows else 0


def _triple(values: tuple[int, ...], default: int) -> Triple:
    return cast(Triple, padded(values, _BATCH_AXES, default))
