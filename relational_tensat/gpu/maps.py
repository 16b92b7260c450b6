"""Lowering of what computes on elements and rows: element by element, reductions, norms, softmaxes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from relational_tensat.base.errors import InputError
from relational_tensat.gpu.calls import (
    THREADS,
    Argument,
    CallEmitter,
    DeviceTensor,
    LoweredNode,
    blocks_for,
    float_type,
)
from relational_tensat.gpu.catalogue import (
    ACTIVATION_CODES,
    BINARY_CODES,
    COMPARISON_CODES,
    DTYPE_CODES,
    LOGIC_CODES,
    MOVED_TYPES,
    REDUCTION_CODES,
    UNARY_CODES,
)
from relational_tensat.gpu.memory import broadcast, collapse, item_bytes, padded
from relational_tensat.gpu.moves import in_one_piece, transposed
from relational_tensat.tensor import TensorType
from relational_tensat.tensor.operators.attributes import float_of, int_of, ints_of, str_of

_WARP = 32
#: By operator, which norm of a sum it is.
_NORMS_OF_SUMS = {"cuda_skip_layer_norm": "layer_norm", "cuda_skip_rms_norm": "rms_norm"}


def lower_reduction(node: LoweredNode) -> DeviceTensor:
    """Lower a reduction: of rows, of columns, or of rows after a transpose that makes them so."""
    emitter, op, inputs, output, attrs = node
    (x,) = inputs
    kind = float_type(op, x.type)
    shape, reduced = x.type.shape, set(ints_of(attrs, "axes"))
    runs = _runs(shape, reduced)
    flags = tuple(flag for flag, _ in runs)
    if True not in flags:  # nothing but axes of size 1
        return DeviceTensor(output, x.ref)
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


def lower_softmax(node: LoweredNode) -> DeviceTensor:
    """Lower a softmax along one axis."""
    emitter, op, inputs, output, attrs = node
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


def lower_norm(node: LoweredNode) -> DeviceTensor:
    """Lower layer_norm, with or without bias, and rms_norm."""
    return _emit_norm(node, node.op, None, node.inputs[1:])


def lower_skip_norm(node: LoweredNode) -> DeviceTensor:
    """Lower such a norm of the sum of the first two operands."""
    return _emit_norm(node, _NORMS_OF_SUMS[node.op], node.inputs[1], node.inputs[2:])


def _emit_norm(
    node: LoweredNode, op: str, skip: DeviceTensor | None, parameters: Sequence[DeviceTensor]
) -> DeviceTensor:
    emitter, _, (x, *_), _, attrs = node
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


#: Threads of these kernels move so many bytes at once.
_PACK_BYTES = 16
_RANK = 5


def lower_unary(node: LoweredNode) -> DeviceTensor:
    """Lower a function of each element."""
    emitter, op, inputs, output, attrs = node
    (x,) = inputs
    kind = float_type(op, x.type)
    (x,), (sizes, strides) = _walked(emitter, (x,), output.shape)
    result = emitter.tensor(output)
    code = "gelu_tanh" if attrs.get("approximate") == "tanh" else op
    low, high = -math.inf, math.inf
    if op == "clip":
        low, high = float_of(attrs, "min"), float_of(attrs, "max")
    if op == "smul":
        low = float_of(attrs, "value")
    emitter.launch(
        f"unary<{kind}>",
        _packed_grid(output) if len(sizes) <= 1 else blocks_for(output.size),
        (THREADS, 1, 1),
        dst=result.ref,
        src=x.ref,
        op=UNARY_CODES[code],
        n=output.size,
        low=low,
        high=high,
        sizes=padded(sizes, _RANK, 1),
        src_strides=padded(strides, _RANK, 0),
    )
    return result


def lower_binary(node: LoweredNode) -> DeviceTensor:
    """Lower a function of two elements, operands broadcast."""
    emitter, op, inputs, output, _ = node
    result = emitter.tensor(output)
    _emit_binary(emitter, op, result, inputs[0], inputs[1], "none")
    return result


def lower_elementwise(node: LoweredNode) -> DeviceTensor:
    """Lower such a function with an activation behind it."""
    emitter, _, inputs, output, attrs = node
    result = emitter.tensor(output)
    function, act = str_of(attrs, "op"), str_of(attrs, "act")
    _emit_binary(emitter, function, result, inputs[0], inputs[1], act)
    return result


def _emit_binary(
    emitter: CallEmitter, op: str, result: DeviceTensor, a: DeviceTensor, b: DeviceTensor, act: str
) -> None:
    """Add act(a op b), broadcast to the result; the result may be an operand of its own shape."""
    (a, b), (sizes, left, right) = _walked(emitter, (a, b), result.type.shape)
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


def _walked(
    emitter: CallEmitter, operands: Sequence[DeviceTensor], shape: tuple[int, ...]
) -> tuple[Sequence[DeviceTensor], tuple[tuple[int, ...], ...]]:
    """Return operands with the sizes and strides that a kernel walks through them by, broadcast.

    Those whose rows lie apart are copied where these are more axes than kernels have.
    """
    views = [broadcast(x.type.shape, shape, x.strides) for x in operands]
    walk = collapse(shape, *views)
    if len(walk[0]) > _RANK and any(x.strides is not None for x in operands):
        return _walked(emitter, [in_one_piece(emitter, x) for x in operands], shape)
    return operands, walk


def lower_is_nan(node: LoweredNode) -> DeviceTensor:
    """Lower a test of each element."""
    emitter, op, inputs, output, _ = node
    (x,) = inputs
    kind, result = float_type(op, x.type), emitter.tensor(output)
    emitter.launch_over(f"is_nan<{kind}>", output.size, dst=result.ref, src=x.ref, n=output.size)
    return result


def lower_condition(node: LoweredNode) -> DeviceTensor:
    """Lower a comparison of elements, or a function of conditions, operands broadcast."""
    emitter, op, inputs, output, _ = node
    operands = inputs[0], inputs[-1]
    (a, b), (sizes, left, right) = _walked(emitter, operands, output.shape)
    result = emitter.tensor(output)
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


def lower_where(node: LoweredNode) -> DeviceTensor:
    """Lower a choice between the elements of two tensors, operands broadcast."""
    emitter, _, inputs, output, _ = node
    (condition, a, b), (sizes, *strides) = _walked(emitter, inputs, output.shape)
    result = emitter.tensor(output)
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


def lower_batch_norm(node: LoweredNode) -> DeviceTensor:
    """Lower a normalization by stored statistics."""
    emitter, op, inputs, output, attrs = node
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


def lower_cast(node: LoweredNode) -> DeviceTensor:
    """Lower a conversion; to the type that the operand has, it is the operand."""
    emitter, op, inputs, output, attrs = node
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
