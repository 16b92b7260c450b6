"""Writing ONNX: what several operators emit alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor.operators.onnx_form import OnnxEmitter
from relational_tensat.tensor.types import numpy_dtype

#: ONNX ``TensorProto.DataType`` numbers of the element types (onnx.proto, enum DataType).
ONNX_DTYPES: dict[str, int] = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7,
    "bool": 9, "float16": 10, "float64": 11, "uint32": 12, "uint64": 13, "bfloat16": 16,
}  # fmt: skip

_ONNX_ACTIVATIONS = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh"}


def dtype_of_onnx(number: int) -> str:
    """Return the name of an element type from its ONNX number.

    Raises:
        ShapeError: operators do not compute with that type.
    """
    for name, code in ONNX_DTYPES.items():
        if code == number:
            return name
    raise ShapeError(f"the ONNX element type {number} is not one that operators compute with")


def emit_ints(emitter: OnnxEmitter, values: Sequence[int]) -> str:
    """Write a list of integers as an int64 initializer; return its name."""
    return emitter.constant(np.array(values, dtype=np.int64))


def emit_constant(emitter: OnnxEmitter, value: Any, dtype: str) -> str:
    """Write an array or number as an initializer of an element type; return its name.

    NumPy has no bfloat16: such a constant is written as float32 and cast.
    """
    name = emitter.constant(np.asarray(value, dtype=numpy_dtype(dtype)))
    if dtype != "bfloat16":
        return name
    return emitter.emit("Cast", [name], to=ONNX_DTYPES["bfloat16"])[0]


def emit_activation(emitter: OnnxEmitter, name: str, act: str) -> list[str]:
    """Write a fused activation as a node of its own; nothing for ``none``."""
    return [name] if act == "none" else emitter.emit(_ONNX_ACTIVATIONS[act], [name])


def emit_reduce(
    emitter: OnnxEmitter, op_type: str, name: str, axes: Sequence[int], keepdims: bool
) -> list[str]:
    """Write a reduction; its axes became an input in version 13 (ReduceSum) or 18 (the others)."""
    if op_type == "ReduceSum" or emitter.opset >= 18:
        return emitter.emit(op_type, [name, emit_ints(emitter, axes)], keepdims=int(keepdims))
    return emitter.emit(op_type, [name], axes=list(axes), keepdims=int(keepdims))
