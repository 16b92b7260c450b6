"""Operators that compute element by element."""

from __future__ import annotations

import math

from relational_tensat.base.errors import InputError
from relational_tensat.gpu.calls import Tensor
from relational_tensat.gpu.codes import (
    ACTIVATION_CODES,
    BINARY_CODES,
    COMPARISON_CODES,
    DTYPE_CODES,
    LOGIC_CODES,
    MOVED_TYPES,
    UNARY_CODES,
)
from relational_tensat.gpu.elements import item_bytes
from relational_tensat.gpu.lowering.emitter import THREADS, Emitter, blocks_for, float_type
from relational_tensat.gpu.strides import broadcast, collapse, padded
from relational_tensat.tensor import Attrs, TensorType
from relational_tensat.tensor.operators.attributes import float_of, str_of

#: Threads of these kernels move so many bytes at once.
_PACK_BYTES = 16
_RANK = 5


def lower_unary(
    emitter: Emitter, op: str, inputs: tuple[Tensor, ...], output: TensorType, attrs: Attrs
) -> Tensor:
    """Lower a function of each element."""
    (x,) = inputs
    kind = float_type(op, x.type)
    result = emitter.tensor(output)
    code = "gelu_tanh" if attrs.get("approximate") == "tanh" else op
    low, high = -math.inf, math.inf
    if op == "clip":
        low, high = float_of(attrs, "min"), float_of(attrs, "max")
    if op == "smul":
        low = float_of(attrs, "value")
    emitter.launch(
        f"unary<{kind}>",
        _packed_grid(output),
        (THREADS, 1, 1),
        dst=result.ref,
        src=x.ref,
        op=UNARY_CODES[code],
        n=output.size,
        low=low,
        high=high,
    )
    return result


def lower_binary(
    emitter: Emitter, op: str, inputs: tuple[Tensor, ...], output: TensorType, attrs: Attrs
) -> Tensor:
    """Lower a function of two elements, operands broadcast."""
    result = emitter.tensor(output)
    emit_binary(emitter, op, result, inputs[0], inputs[1], "none")
    return result


def lower_elementwise(
    emitter: Emitter, op: str, inputs: tuple[Tensor, ...], output: TensorType, attrs: Attrs
) -> Tensor:
    """Lower such a function with an activation behind it."""
    result = emitter.tensor(output)
    function, act = str_of(attrs, "op"), str_of(attrs, "act")
    emit_binary(emitter, function, result, inputs[0], inputs[1], act)
    return result


def emit_binary(emitter: Emitter, op: str, result: Tensor, a: Tensor, b: Tensor, act: str) -> None:
    """Add act(a op b), broadcast to the result; the result may be an operand of its own shape."""
    shape = result.type.shape
    views = [broadcast(operand.type.shape, shape) for operand in (a, b)]
    sizes, left, right = collapse(shape, *views)
    emitter.launch(
        f"binary<{float_type(op, result.type)}>",
        _packed_grid(result.type) if len(sizes) <= 1 else blocks_for(result.type.size),
        (THREADS, 1, 1),
        dst=result.ref,
        a=a.ref,
        b=b.ref,
        op=BINARY_CODES[op],
        act=ACTIVATION_CODES[act],
        n=result.type.size,
        sizes=padded(sizes, _RANK, 1),
        a_strides=padded(left, _RANK, 0),
        b_strides=padded(right, _RANK, 0),
    )


def lower_is_nan(
    emitter: Emitter, op: str, inputs: tuple[Tensor, ...], output: TensorType, attrs: Attrs
) -> Tensor:
    """Lower a test of each element."""
    (x,) = inputs
    kind, result = float_type(op, x.type), emitter.tensor(output)
    emitter.launch_over(f"is_nan<{kind}>", output.size, dst=result.ref, src=x.ref, n=output.size)
    return result


def lower_condition(
    emitter: Emitter, op: str, inputs: tuple[Tensor, ...], output: TensorType, attrs: Attrs
) -> Tensor:
    """Lower a comparison of elements, or a function of conditions, operands broadcast."""
    a, b = inputs[0], inputs[-1]
    result = emitter.tensor(output)
    views = [broadcast(operand.type.shape, output.shape) for operand in (a, b)]
    sizes, left, right = collapse(output.shape, *views)
    is_logic = op in LOGIC_CODES
    emitter.launch_over(
        "decide" if is_logic else f"compare<{float_type(op, a.type)}>",
        output.size,
        dst=result.ref,
        a=a.ref,
        b=b.ref,
        op=LOGIC_CODES[op] if is_logic else COMPARISON_CODES[op],
        n=output.size,
        sizes=padded(sizes, _RANK, 1),
        a_strides=padded(left, _RANK, 0),
        b_strides=padded(right, _RANK, 0),
    )
    return result


def lower_where(
    emitter: Emitter, op: str, inputs: tuple[Tensor, ...], output: TensorType, attrs: Attrs
) -> Tensor:
    """Lower a choice between the elements of two tensors, operands broadcast."""
    condition, a, b = inputs
    result = emitter.tensor(output)
    views = [broadcast(operand.type.shape, output.shape) for operand in inputs]
    sizes, *strides = collapse(output.shape, *views)
    whose, left, right = (padded(view, _RANK, 0) for view in strides)
    emitter.launch_over(
        f"choose<{MOVED_TYPES[item_bytes(output.dtype)]}>",
        output.size,
        dst=result.ref,
        condition=condition.ref,
        a=a.ref,
        b=b.ref,
        n=output.size,
        sizes=padded(sizes, _RANK, 1),
        condition_strides=whose,
        a_strides=left,
        b_strides=right,
    )
    return result


def lower_batch_norm(
    emitter: Emitter, op: str, inputs: tuple[Tensor, ...], output: TensorType, attrs: Attrs
) -> Tensor:
    """Lower a normalization by stored statistics."""
    x, scale, bias, mean, var = inputs
    result = emitter.tensor(output)
    emitter.launch_over(
        f"batch_norm<{float_type(op, x.type)}>",
        output.size,
        dst=result.ref,
        x=x.ref,
        scale=scale.ref,
        bias=bias.ref,
        mean=mean.ref,
        var=var.ref,
        epsilon=float_of(attrs, "epsilon"),
        channels=x.type.shape[1],
        inner=math.prod(x.type.shape[2:]),
        n=output.size,
    )
    return result


def lower_cast(
    emitter: Emitter, op: str, inputs: tuple[Tensor, ...], output: TensorType, attrs: Attrs
) -> Tensor:
    """Lower a conversion; to the type that the operand has, it is the operand."""
    (x,) = inputs
    dtype_to = str_of(attrs, "dtype")
    if dtype_to == x.type.dtype:
        return x
    for dtype in (dtype_to, x.type.dtype):
        if dtype not in DTYPE_CODES:
            raise InputError(f"no GPU kernel for {op} of {dtype}")
    result = emitter.tensor(output)
    emitter.launch_over(
        "cast",
        output.size,
        dst=result.ref,
        src=x.ref,
        target=DTYPE_CODES[dtype_to],
        source=DTYPE_CODES[x.type.dtype],
        n=output.size,
    )
    return result


def _packed_grid(kind: TensorType) -> tuple[int, int, int]:
    return blocks_for(math.ceil(kind.nbytes / _PACK_BYTES))
