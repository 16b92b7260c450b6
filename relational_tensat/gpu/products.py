"""Lowering of products, convolutions and pools.

Matrix products broadcast batches, and fuse scale, transposed factors, an addend, bias and activation.
Rows of factors may lie apart, as in columns of a larger matrix.
Windows over one to three spatial dimensions are always lowered as three.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from relational_tensat.gpu.calls import (
    CallEmitter,
    Convolution,
    DeviceTensor,
    LoweredNode,
    Pooling,
    ProductCall,
    Triple,
    Windows,
    float_type,
    strides_of,
)
from relational_tensat.gpu.memory import broadcast, collapse, contiguous, padded
from relational_tensat.gpu.moves import in_one_piece
from relational_tensat.tensor import Attrs, TensorType
from relational_tensat.tensor.operators.attributes import (
    bool_of,
    float_of,
    ints_of,
    padding_of,
    str_of,
)
from relational_tensat.tensor.operators.windows import resolve_padding


def lower_conv(node: LoweredNode) -> DeviceTensor:
    """Lower a convolution, its groups read off the shapes."""
    return _emit_conv(node, None, *node.inputs[2:])


def lower_conv_add(node: LoweredNode) -> DeviceTensor:
    """Lower a convolution with an addend; operands x, w, addend and, if any, bias."""
    return _emit_conv(node, *node.inputs[2:])


def _emit_conv(
    node: LoweredNode, addend: DeviceTensor | None, bias: DeviceTensor | None = None
) -> DeviceTensor:
    emitter, _, (x, w, *_), output, attrs = node
    float_type("conv", x.type)
    groups = x.type.shape[1] // w.type.shape[1]
    result = emitter.tensor(output)
    emitter.calls.append(
        Convolution(
            y=result.ref,
            x=x.ref,
            w=w.ref,
            bias=bias.ref if bias else None,
            dtype=x.type.dtype,
            math=emitter.math,
            batch=x.type.shape[0],
            groups=groups,
            channels=w.type.shape[1],
            filters=w.type.shape[0] // groups,
            windows=_windows(x.type, w.type.shape[2:], output, attrs),
            rank=x.type.rank - 2,
            act=str_of(attrs, "act"),
            addend=addend.ref if addend else None,
        )
    )
    return result


def lower_pool(node: LoweredNode) -> DeviceTensor:
    """Lower a pool."""
    emitter, op, inputs, output, attrs = node
    (x,) = inputs
    float_type(op, x.type)
    result = emitter.tensor(output)
    emitter.calls.append(
        Pooling(
            y=result.ref,
            x=x.ref,
            op=op,
            dtype=x.type.dtype,
            batch=x.type.shape[0],
            channels=x.type.shape[1],
            windows=_windows(x.type, ints_of(attrs, "kernel"), output, attrs),
            rank=x.type.rank - 2,
            include_pad=bool(attrs.get("count_include_pad", False)),
            act=str_of(attrs, "act"),
        )
    )
    return result


def _windows(x: TensorType, kernel: tuple[int, ...], output: TensorType, attrs: Attrs) -> Windows:
    sizes, stride = x.shape[2:], ints_of(attrs, "stride")
    dilation = ints_of(attrs, "dilation") or (1,) * len(sizes)
    begins, ends = resolve_padding(padding_of(attrs), sizes, kernel, stride, dilation)
    return Windows(
        sizes=_triple(sizes, 1),
        out=_triple(output.shape[2:], 1),
        kernel=_triple(kernel, 1),
        stride=_triple(stride, 1),
        dilation=_triple(dilation, 1),
        begins=_triple(begins, 0),
        ends=_triple(ends, 0),
    )


_BATCH_AXES = 3


@dataclass(frozen=True, slots=True)
class _Factors:
    """The factors, and how they are multiplied: alpha A B, each factor transposed first on demand."""

    a: DeviceTensor
    b: DeviceTensor
    alpha: float = 1.0
    transposes_a: bool = False
    transposes_b: bool = False


@dataclass(frozen=True, slots=True)
class _Epilogue:
    """The last steps of a product: an addend of its type, a bias, an activation."""

    addend: DeviceTensor | None
    bias: DeviceTensor | None
    act: str


def lower_matmul(node: LoweredNode) -> DeviceTensor:
    """Lower a product; where all products of a batch share B, it is one of more rows."""
    a, b, *bias = node.inputs
    epilogue = _Epilogue(None, bias[0] if bias else None, str_of(node.attrs, "act"))
    return _emit(node, _Factors(a, b), epilogue)


def lower_product(node: LoweredNode) -> DeviceTensor:
    """Lower a scaled product of factors that may lie transposed; operands A, B and, if any, bias."""
    return _emit_scaled(node, None, *node.inputs[2:])


def lower_product_add(node: LoweredNode) -> DeviceTensor:
    """Lower such a product with an addend; operands A, B, addend and, if any, bias."""
    return _emit_scaled(node, *node.inputs[2:])


def _emit_scaled(
    node: LoweredNode, addend: DeviceTensor | None, bias: DeviceTensor | None = None
) -> DeviceTensor:
    (a, b, *_), attrs = node.inputs, node.attrs
    is_transposed = bool_of(attrs, "trans_a"), bool_of(attrs, "trans_b")
    factors = _Factors(a, b, float_of(attrs, "alpha"), *is_transposed)
    return _emit(node, factors, _Epilogue(addend, bias, str_of(attrs, "act")))


def _emit(node: LoweredNode, factors: _Factors, epilogue: _Epilogue) -> DeviceTensor:
    emitter, op, _, output, _ = node
    float_type(op, output)
    (a, a_pitch), (b, b_pitch) = _pitched(emitter, factors.a), _pitched(emitter, factors.b)
    bias = epilogue.bias
    batch, m, n = output.shape[:-2], output.shape[-2], output.shape[-1]
    k = a.type.shape[-2 if factors.transposes_a else -1]
    a_view = _batch_strides(a, batch)
    b_view = _batch_strides(b, batch)
    bias_view = (
        broadcast(bias.type.shape, output.shape, bias.strides) if bias else (0,) * output.rank
    )
    *bias_batch, bias_row, bias_column = bias_view
    rows = _joined_rows(batch, m, a_view, b_view, bias_view, a_pitch)
    if rows is not None and not factors.transposes_a:
        m, bias_row = rows
        batch, a_view, b_view, bias_batch = (), (), (), []
    batch, a_view, b_view, bias_tuple = collapse(batch, a_view, b_view, bias_batch)
    addend = in_one_piece(emitter, epilogue.addend) if epilogue.addend else None
    result = emitter.tensor(output)
    emitter.calls.append(
        ProductCall(
            c=result.ref,
            a=a.ref,
            b=b.ref,
            bias=bias.ref if bias else None,
            dtype=output.dtype,
            math=emitter.math,
            m=m,
            n=n,
            k=k,
            batches=_triple(batch, 1),
            a_strides=_triple(a_view, 0),
            b_strides=_triple(b_view, 0),
            a_pitch=a_pitch,
            b_pitch=b_pitch,
            bias_strides=(*_triple(bias_tuple, 0), bias_row, bias_column),
            act=epilogue.act,
            addend=addend.ref if addend else None,
            alpha=factors.alpha,
            transposes_a=factors.transposes_a,
            transposes_b=factors.transposes_b,
        )
    )
    return result


def _pitched(emitter: CallEmitter, x: DeviceTensor) -> tuple[DeviceTensor, int]:
    """Return a factor whose rows are in one piece each, and how far these are apart."""
    rows, columns = x.type.shape[-2:]
    *_, pitch, step = strides_of(x)
    if columns > 1 and step != 1:
        x, pitch = in_one_piece(emitter, x), columns
    return x, columns if rows == 1 else pitch


def _batch_strides(x: DeviceTensor, batch: tuple[int, ...]) -> tuple[int, ...]:
    """Return how far matrices are apart along the result's batch axes; 0 where repeated."""
    return broadcast(x.type.shape[:-2], batch, strides_of(x)[:-2])


def _joined_rows(
    batch: tuple[int, ...],
    m: int,
    a_view: tuple[int, ...],
    b_view: tuple[int, ...],
    bias_view: tuple[int, ...],
    a_pitch: int,
) -> tuple[int, int] | None:
    """Return the rows, and the bias's stride along them, of one product in place of a batch."""
    sizes, a_left = collapse(batch, a_view)  # a batch axis of size 1 may have any stride
    if any(b_view) or a_left != tuple(step * m * a_pitch for step in contiguous(sizes)):
        return None
    sizes, rows = collapse((*batch, m), bias_view[:-1])
    if len(sizes) > 1:
        return None
    return math.prod(batch) * m, rows[0] if rows else 0


def _triple(values: Sequence[int], default: int) -> Triple:
    return cast(Triple, padded(values, _BATCH_AXES, default))
