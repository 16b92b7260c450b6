"""Convolutions and pools: windows over one to three spatial dimensions, always lowered as three."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from relational_tensat.gpu.calls import Convolution, Pooling, Tensor, Triple, Windows
from relational_tensat.gpu.lowering.emitter import Emitter, float_type
from relational_tensat.gpu.strides import padded
from relational_tensat.tensor import Attrs, TensorType
from relational_tensat.tensor.operators.attributes import ints_of, padding_of, str_of
from relational_tensat.tensor.operators.windows import resolve_padding


def lower_conv(
    emitter: Emitter, op: str, inputs: tuple[Tensor, ...], output: TensorType, attrs: Attrs
) -> Tensor:
    """Lower a convolution, its groups read off the shapes."""
    x, w, *bias = inputs
    return _emit_conv(emitter, (x, w), (None, *bias), output, attrs)


def lower_conv_add(
    emitter: Emitter, op: str, inputs: tuple[Tensor, ...], output: TensorType, attrs: Attrs
) -> Tensor:
    """Lower a convolution with an addend; operands x, w, addend and, if any, bias."""
    x, w, *added = inputs
    return _emit_conv(emitter, (x, w), tuple(added), output, attrs)


def _emit_conv(
    emitter: Emitter,
    factors: tuple[Tensor, Tensor],
    added: tuple[Tensor | None, ...],
    output: TensorType,
    attrs: Attrs,
) -> Tensor:
    x, w = factors
    addend, bias = (*added, None)[:2]
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


def lower_pool(
    emitter: Emitter, op: str, inputs: tuple[Tensor, ...], output: TensorType, attrs: Attrs
) -> Tensor:
    """Lower a pool."""
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


def _triple(values: Sequence[int], default: int) -> Triple:
    return cast(Triple, padded(values, 3, default))
