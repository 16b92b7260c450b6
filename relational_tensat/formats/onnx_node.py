"""One ONNX node as operators see it when they read it (``tensor.operators.onnx_form.OnnxNode``)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import AttributeProto

from relational_tensat.formats.onnx_types import array_of
from relational_tensat.tensor import TensorType, Weight
from relational_tensat.tensor.types import Array


@dataclass(frozen=True, slots=True)
class ReadNode:
    """The static facts of an ONNX node."""

    op_type: str
    domain: str
    opset: int
    inputs: tuple[str, ...]
    input_types: tuple[TensorType | None, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    weights: Mapping[str, Weight]

    def constant(self, index: int) -> Array | None:
        """Return the value of an input that is known before inference, None if it is not."""
        if index >= len(self.inputs):
            return None
        weight = self.weights.get(self.inputs[index])
        return None if weight is None else weight.data


def read_node(
    node: onnx.NodeProto,
    opset: int,
    types: Mapping[str, TensorType],
    weights: Mapping[str, Weight],
    needed_values: Collection[str],
) -> ReadNode:
    """Return what operators may know of a node.

    Args:
        opset: the version of the default operator set.
        needed_values: the values that the model needs; other outputs count as left out.
    """
    return ReadNode(
        node.op_type,
        node.domain,
        opset,
        tuple(node.input),
        tuple(types[name] if name else None for name in node.input),
        tuple(name if name in needed_values else "" for name in node.output),
        {attribute.name: attribute_value(attribute) for attribute in node.attribute},
        weights,
    )


def attribute_value(attribute: onnx.AttributeProto) -> Any:
    """Return an attribute as Python has it: numbers, strings, tuples of these, arrays.

    Strings that are no UTF-8 stay bytes; graphs, types and sparse tensors stay protobuf messages.
    """
    match attribute.type:
        case AttributeProto.FLOAT:
            return float(attribute.f)
        case AttributeProto.INT:
            return int(attribute.i)
        case AttributeProto.STRING:
            return _text(attribute.s)
        case AttributeProto.TENSOR:
            return array_of(attribute.t)
        case AttributeProto.FLOATS:
            return tuple(map(float, attribute.floats))
        case AttributeProto.INTS:
            return tuple(map(int, attribute.ints))
        case AttributeProto.STRINGS:
            return tuple(map(_text, attribute.strings))
        case AttributeProto.TENSORS:
            return tuple(map(array_of, attribute.tensors))
        case _:
            return onnx.helper.get_attribute_value(attribute)


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value
