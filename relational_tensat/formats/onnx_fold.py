"""Constants of an ONNX graph before inference: shapes, and cheap arithmetic of these, are folded.

Folded are constants in all spellings, shapes (``Shape`` and ``Size`` of any tensor), uniform tensors
(``ConstantOfShape``, ``Expand`` of one number; kept as broadcast views), and nodes of the default operator
set whose operands are all known, as long as they are cheap: the arithmetic around shapes and small tables.
Large computations on weights stay nodes, for the optimizer to see, and quantized weights stay quantized,
however small: runtimes look for DequantizeLinear beside their kernels.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import AttributeProto

from relational_tensat.formats.arrays import UNIFORM_MIN_ELEMENTS, UNIFORM_MOST_ELEMENTS
from relational_tensat.formats.onnx_names import all_nodes, subgraphs
from relational_tensat.formats.onnx_node import NodeOracle, attribute_value
from relational_tensat.formats.onnx_opaque import input_names, is_deterministic
from relational_tensat.formats.onnx_types import (
    dense_weight,
    is_carried,
    is_numeric,
    is_tensor_of_unknown_shape,
    type_of,
)
from relational_tensat.tensor import TensorType, Weight, numpy_dtype
from relational_tensat.tensor.types import Array

#: Largest operands and results that are folded: integers describe shapes, floats are computed.
_FOLDED_INTEGERS = 65536
_FOLDED_FLOATS = 1024


def fold(
    node: onnx.NodeProto,
    types: Mapping[str, TensorType],
    weights: Mapping[str, Weight],
    oracle: NodeOracle,
) -> dict[str, Weight] | None:
    """Return the node's outputs as weights, or None when it is no constant or costs too much.

    Args:
        types: of the values known so far.
        weights: the values known before inference, some without data.
    """
    if node.domain or not all(node.output):
        return None
    match node.op_type:
        case "Constant":
            return _constant(node)
        case "Shape" | "Size":
            return _shape(node, types)
        case "QuantizeLinear":  # four times as small as what it is made of
            return _computed(node, types, weights, oracle, of_any_size=True)
        case "ConstantOfShape" | "Expand":
            uniform = _uniform(node, weights)
            if uniform is not None:
                return uniform
    return _computed(node, types, weights, oracle)


def _constant(node: onnx.NodeProto) -> dict[str, Weight] | None:
    attribute = node.attribute[0]
    value = attribute_value(attribute)
    match attribute.type:
        case AttributeProto.TENSOR:
            kind = type_of(attribute.t)
            if not is_numeric(kind):
                return None
        case AttributeProto.INT | AttributeProto.INTS:
            value = np.array(value, np.int64)
            kind = TensorType("int64", value.shape)
        case AttributeProto.FLOAT | AttributeProto.FLOATS:
            value = np.array(value, np.float32)
            kind = TensorType("float32", value.shape)
        case AttributeProto.SPARSE_TENSOR:
            weight = dense_weight(attribute.sparse_tensor)
            return None if weight is None else {node.output[0]: weight}
        case _:  # strings: an opaque node
            return None
    return {node.output[0]: Weight(kind, value)}


def _shape(node: onnx.NodeProto, types: Mapping[str, TensorType]) -> dict[str, Weight] | None:
    kind = types[node.input[0]]
    if is_carried(kind):
        return None
    shape = kind.shape
    if node.op_type == "Size":
        return _integers(node, np.array(kind.size, np.int64))
    bounds = {item.name: item.i for item in node.attribute}
    return _integers(node, np.array(shape[bounds.get("start", 0) : bounds.get("end")], np.int64))


def _integers(node: onnx.NodeProto, value: Array) -> dict[str, Weight]:
    return {node.output[0]: Weight(TensorType("int64", value.shape), value)}


def _uniform(node: onnx.NodeProto, weights: Mapping[str, Weight]) -> dict[str, Weight] | None:
    """Return ConstantOfShape, and Expand of one number, without making the tensor."""
    expands = node.op_type == "Expand"
    shape = data_of(weights, node.input[1 if expands else 0])
    if shape is None:
        return None
    sizes, dtype = tuple(int(size) for size in shape), "float32"
    element: Array = np.zeros((), np.float32)
    if expands:
        value = data_of(weights, node.input[0])
        if value is None or value.size != 1:
            return None
        element, dtype = value, weights[node.input[0]].type.dtype
        sizes = (1,) * (element.ndim - len(sizes)) + sizes
    for attribute in node.attribute:  # ConstantOfShape's value
        element, dtype = np.asarray(attribute_value(attribute)), type_of(attribute.t).dtype
    kind = TensorType(dtype, sizes)
    if not is_numeric(kind) or not UNIFORM_MIN_ELEMENTS <= kind.size <= UNIFORM_MOST_ELEMENTS:
        return None
    return {node.output[0]: Weight(kind, np.broadcast_to(element.reshape(()), kind.shape))}


def _computed(
    node: onnx.NodeProto,
    types: Mapping[str, TensorType],
    weights: Mapping[str, Weight],
    oracle: NodeOracle,
    *,
    of_any_size: bool = False,
) -> dict[str, Weight] | None:
    """Return what a cheap node of known operands computes."""
    is_cheap = is_numeric if of_any_size else _is_cheap
    operands = [name for name in node.input if name]
    if any(data_of(weights, name) is None or not is_cheap(types[name]) for name in operands):
        return None
    if node.op_type == "DequantizeLinear":
        return None
    if not is_deterministic(node) or any(True for _ in subgraphs(node)):
        return None
    outputs = oracle.output_types(node, types, weights)
    types_of = {name: kind for name, kind in outputs.items() if kind is not None}
    if len(types_of) < len(outputs):
        return None
    if not all(is_cheap(kind) or is_tensor_of_unknown_shape(kind) for kind in types_of.values()):
        return None
    if all(is_numeric(kind) and kind.size == 0 for kind in types_of.values()):
        # Nothing to compute; kernels of onnxruntime may crash on tensors without elements.
        return {
            name: Weight(kind, np.empty(kind.shape, numpy_dtype(kind.dtype)))
            for name, kind in types_of.items()
        }
    values = oracle.evaluate(node, {**types, **types_of}, weights)
    if values is None:
        return None
    folded = {
        name: Weight(TensorType(str(value.dtype), value.shape), value)
        for name, value in values.items()
    }
    return folded if all(is_cheap(weight.type) for weight in folded.values()) else None


def _is_cheap(kind: TensorType) -> bool:
    if not is_numeric(kind) or kind.dtype == "bfloat16":
        return False
    return kind.size <= (_FOLDED_FLOATS if kind.is_float else _FOLDED_INTEGERS)


def data_of(weights: Mapping[str, Weight], name: str) -> Array | None:
    """Return a value's elements, None where they are not known."""
    weight = weights.get(name)
    return None if weight is None else weight.data


def few_turns(node: onnx.NodeProto, constants: Mapping[str, Weight]) -> int | None:
    """Return how often a loop runs, if that is known and its turns are no more nodes than it has.

    Args:
        node: a Loop.
        constants: of the file: a number that is computed from sizes is another one at other sizes.
    """
    count, first = (data_of(constants, name) if name else None for name in node.input[:2])
    is_begun = not node.input[1] or (first is not None and bool(first))
    (body,) = (attribute.g for attribute in node.attribute if attribute.HasField("g"))
    n_carried = len(node.input) - 2
    if count is None or not is_begun or len(body.output) != 1 + n_carried:
        return None
    going_on = {body.input[1].name}
    others = []
    for one in body.node:
        if one.op_type == "Identity" and one.input[0] in going_on:
            going_on.add(one.output[0])
        elif one.op_type != "Constant":
            others.append(one)
    is_short = int(count) * len(list(all_nodes(others))) <= 1 + len(list(all_nodes(body.node)))
    is_endless = body.output[0].name in going_on
    names = {name for one in others for name in input_names(one)}
    return int(count) if is_short and is_endless and going_on.isdisjoint(names) else None
