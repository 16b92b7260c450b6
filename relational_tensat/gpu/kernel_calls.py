"""From operators to calls of kernels.

A lowering takes tensors in memory and returns those of the results. They are views of the operands if no
kernel has to run, else tensors in new buffers, with the calls that fill them. Kernels that read row-major
tensors only are given copies of others. Nothing here touches a device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from relational_tensat.base.errors import InputError
from relational_tensat.gpu.calls import CallEmitter, DeviceTensor, LoweredNode
from relational_tensat.gpu.catalogue import (
    BINARY_CODES,
    COMPARISON_CODES,
    LOGIC_CODES,
    REDUCTION_CODES,
    UNARY_CODES,
)
from relational_tensat.gpu.maps import (
    lower_batch_norm,
    lower_binary,
    lower_cast,
    lower_condition,
    lower_elementwise,
    lower_is_nan,
    lower_norm,
    lower_reduction,
    lower_skip_norm,
    lower_softmax,
    lower_unary,
    lower_where,
)
from relational_tensat.gpu.moves import (
    in_one_piece,
    lower_concat,
    lower_enlarge,
    lower_expand,
    lower_gather,
    lower_merge,
    lower_pad,
    lower_slice,
    lower_split,
    lower_transpose,
    lower_view,
)
from relational_tensat.gpu.products import (
    lower_conv,
    lower_conv_add,
    lower_matmul,
    lower_pool,
    lower_product,
    lower_product_add,
)
from relational_tensat.tensor import Attrs, ValueType, tensors_of

#: To the result's tensor or tensors.
_Lowering: TypeAlias = Callable[[LoweredNode], DeviceTensor | Sequence[DeviceTensor]]

_LOWERINGS: dict[str, _Lowering] = {
    **dict.fromkeys((op for op in UNARY_CODES if op != "gelu_tanh"), lower_unary),
    **dict.fromkeys(BINARY_CODES, lower_binary),
    **dict.fromkeys((*COMPARISON_CODES, *LOGIC_CODES), lower_condition),
    **dict.fromkeys(REDUCTION_CODES, lower_reduction),
    **dict.fromkeys(("identity", "dropout", "reshape"), lower_view),
    **dict.fromkeys(("layer_norm", "rms_norm"), lower_norm),
    **dict.fromkeys(("max_pool", "avg_pool"), lower_pool),
    "batch_norm": lower_batch_norm,
    "cast": lower_cast,
    "concat": lower_concat,
    "conv": lower_conv,
    "enlarge": lower_enlarge,
    "expand": lower_expand,
    "gather": lower_gather,
    "is_nan": lower_is_nan,
    "matmul": lower_matmul,
    "merge": lower_merge,
    "pad": lower_pad,
    "slice": lower_slice,
    "softmax": lower_softmax,
    "split": lower_split,
    "transpose": lower_transpose,
    "where": lower_where,
}
#: Of the kernels of the target ``cuda``, which exist where it is known.
_FUSED: dict[str, _Lowering] = {
    "cuda_conv_add": lower_conv_add,
    "cuda_elementwise": lower_elementwise,
    "cuda_product": lower_product,
    "cuda_product_add": lower_product_add,
    "cuda_skip_layer_norm": lower_skip_norm,
    "cuda_skip_rms_norm": lower_skip_norm,
}

#: Operators whose kernels read tensors as they are whose rows lie apart.
_READS_VIEWS = frozenset({
    *UNARY_CODES, *BINARY_CODES, *COMPARISON_CODES, *LOGIC_CODES, "identity", "dropout", "reshape", "where",
    "matmul", "expand", "slice", "split", "transpose", "cuda_product", "cuda_product_add",
    "cuda_elementwise",
})  # fmt: skip


def lower(
    emitter: CallEmitter, op: str, inputs: tuple[DeviceTensor, ...], output: ValueType, attrs: Attrs
) -> tuple[DeviceTensor, ...]:
    """Add the calls that one operator takes; return the tensors of its result.

    Args:
        inputs: the operands' tensors; a tuple operand as its parts.
        attrs: canonical.

    Raises:
        InputError: there is no kernel for this operator, element type or number of axes.
    """
    if op == "noop":
        return inputs
    lowering = _LOWERINGS.get(op) or _FUSED.get(op)
    if lowering is None:
        raise InputError(f"no GPU kernel for the operator {op}")
    if op not in _READS_VIEWS:
        inputs = tuple(in_one_piece(emitter, tensor) for tensor in inputs)
    result = lowering(LoweredNode(emitter, op, inputs, output, attrs))
    tensors: tuple[DeviceTensor, ...] = (
        (result,) if isinstance(result, DeviceTensor) else tuple(result)
    )
    expected = tensors_of(output)
    return tuple(replace(tensor, type=kind) for kind, tensor in zip(expected, tensors, strict=True))
