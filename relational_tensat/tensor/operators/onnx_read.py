"""Reading ONNX nodes of any version: attributes that became inputs, defaults, static operands.

Every function raises ``ShapeError`` where a node says something that is known at run time only;
``registry.map_onnx`` then leaves the node opaque.
"""

from __future__ import annotations

from typing import Any

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor.operators.onnx_form import OnnxNode
from relational_tensat.tensor.types import TensorType


def attr_int(node: OnnxNode, name: str, default: int) -> int:
    """Return an integer attribute."""
    return int(node.attributes.get(name, default))


def attr_float(node: OnnxNode, name: str, default: float) -> float:
    """Return a float attribute."""
    return float(node.attributes.get(name, default))


def attr_str(node: OnnxNode, name: str, default: str) -> str:
    """Return a string attribute."""
    value: Any = node.attributes.get(name, default)
    return value.decode() if isinstance(value, bytes) else str(value)


def attr_ints(node: OnnxNode, name: str) -> tuple[int, ...] | None:
    """Return an attribute that is a list of integers, None if it is not given."""
    value = node.attributes.get(name)
    return None if value is None else tuple(int(item) for item in value)


def has_input(node: OnnxNode, index: int) -> bool:
    """Return whether an optional input is given."""
    return index < len(node.inputs) and node.inputs[index] != ""


def input_type(node: OnnxNode, index: int) -> TensorType:
    """Return the type of an input.

    Raises:
        ShapeError: the input is left out, or no tensor of static shape.
    """
    kind = node.input_types[index] if has_input(node, index) else None
    if kind is None:
        raise ShapeError(f"{node.op_type}: input {index} has no static type")
    return kind


def constant_ints(node: OnnxNode, index: int) -> tuple[int, ...]:
    """Return the integers of an input that is known before inference.

    Raises:
        ShapeError: it is not known.
    """
    value = node.constant(index)
    if value is None:
        raise ShapeError(f"{node.op_type}: input {index} is not known before inference")
    return tuple(int(item) for item in value.reshape(-1))


def constant_float(node: OnnxNode, index: int, default: float) -> float:
    """Return the one number of an optional input.

    Raises:
        ShapeError: it is not known before inference, or not one number.
    """
    if not has_input(node, index):
        return default
    value = node.constant(index)
    if value is None or value.size != 1:
        raise ShapeError(f"{node.op_type}: input {index} is not one number known before inference")
    return float(value.reshape(-1)[0])


def static_ints(node: OnnxNode, name: str, index: int) -> tuple[int, ...] | None:
    """Return a list that old versions give as an attribute and new ones as an input, or None.

    Raises:
        ShapeError: the input is not known before inference.
    """
    if name in node.attributes:
        return attr_ints(node, name)
    return constant_ints(node, index) if has_input(node, index) else None


def check_one_output(node: OnnxNode) -> None:
    """Refuse a node whose optional further outputs (a mask, indices, statistics) are used.

    Raises:
        ShapeError: one is used.
    """
    if any(node.outputs[1:]):
        raise ShapeError(f"{node.op_type}: only the first output is understood")
