"""Nodes in another version of the default operator set: converted, and compared where they can be run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import version_converter

from relational_tensat.formats.onnx_infer import differ_on_random
from relational_tensat.formats.onnx_names import all_nodes
from relational_tensat.formats.onnx_opset import (
    CHANGED,
    INFERENCE_ERRORS,
    infer_shapes,
    opset_imports,
)
from relational_tensat.formats.onnx_types import to_value_info
from relational_tensat.tensor import Array, TensorType


def convert_node(
    node: onnx.NodeProto,
    types: Mapping[str, TensorType],
    imports: Mapping[str, int],
    version: int,
    known: Mapping[str, Array] | None = None,
) -> list[onnx.NodeProto] | None:
    """Return nodes that compute in another version of the default set what ``node`` computes.

    Args:
        types: the types of the node's inputs, of the outer values that its subgraphs use, and of
            its outputs.
        imports: versions of the operator sets that the node is in.
        known: values of inputs, where they are constants.

    Returns:
        The nodes, in order; None when the version converter has no way, or makes something else of it.
    """
    if node.domain in ("", "ai.onnx"):
        if node.op_type == "PRelu" and imports[""] < 7:
            return _convert_prelu(node, types)
        if node.op_type == "Hardmax" and imports[""] < 13 <= version:
            return _convert_hardmax(node, types)
        is_upsampling = node.op_type == "Upsample" and imports[""] >= 7
        is_resizing = node.op_type == "Resize" and imports[""] == 10
        if (is_upsampling or is_resizing) and version >= 11:
            return _convert_resize(node, types)
    if any(imports[""] < CHANGED.get(inner.op_type, 0) <= version for inner in all_nodes([node])):
        return None
    inputs = [name for name in types if name not in node.output]
    graph = onnx.helper.make_graph(
        [node],
        "node",
        [to_value_info(name, types[name]) for name in inputs],
        [to_value_info(name, types[name]) for name in node.output if name],
    )
    model = onnx.helper.make_model(graph, opset_imports=opset_imports(imports), ir_version=10)
    try:
        converted = version_converter.convert_version(model, version)
    except RuntimeError:  # what its C++ code raises when an adapter is missing or does not apply
        return None
    if not _still_fits(converted, [name for name in node.output if name]):
        return None
    if differ_on_random(model, converted, known or {}):
        return None
    constants = [
        onnx.helper.make_node("Constant", [], [tensor.name], value=tensor)
        for tensor in converted.graph.initializer
    ]
    return [*constants, *converted.graph.node]


def _still_fits(converted: onnx.ModelProto, outputs: list[str]) -> bool:
    """Whether a converted node still gives the same outputs, of types that fit."""
    if [value.name for value in converted.graph.output] != outputs:
        return False
    del converted.graph.value_info[:]  # of the node before the conversion
    try:
        infer_shapes(converted)
    except INFERENCE_ERRORS:
        return False
    return True


def _convert_prelu(node: onnx.NodeProto, types: Mapping[str, TensorType]) -> list[onnx.NodeProto]:
    """Return PRelu as it is from version 7 on, where the slope broadcasts from the last axis.

    Before, a slope of one dimension went along axis 1; the version converter overlooks that.
    """
    data, slope = types[node.input[0]], types[node.input[1]]
    if slope.rank != 1 or slope.size == 1 or data.rank <= 2:
        return [node]
    shape = np.array([slope.size, *(1 for _ in range(data.rank - 2))], np.int64)
    return [
        _constant("shape", shape),
        onnx.helper.make_node("Reshape", [node.input[1], "shape"], ["slope"]),
        onnx.helper.make_node("PRelu", [node.input[0], "slope"], list(node.output)),
    ]


def _convert_hardmax(node: onnx.NodeProto, types: Mapping[str, TensorType]) -> list[onnx.NodeProto]:
    """Return Hardmax as it is from version 13 on, where it is along one axis.

    Before, it was along all from ``axis`` on; the version converter overlooks that.
    """
    shape = types[node.input[0]].shape
    axis = next((item.i for item in node.attribute if item.name == "axis"), 1) % len(shape)
    rows = [int(np.prod(shape[:axis])), int(np.prod(shape[axis:]))]
    values = {"rows": rows, "shape": list(shape)}
    return [
        *(_constant(name, np.array(value, np.int64)) for name, value in values.items()),
        onnx.helper.make_node("Reshape", [node.input[0], "rows"], ["flat"]),
        onnx.helper.make_node("Hardmax", ["flat"], ["largest"], axis=-1),
        onnx.helper.make_node("Reshape", ["largest", "shape"], list(node.output)),
    ]


def _convert_resize(
    node: onnx.NodeProto, types: Mapping[str, TensorType]
) -> list[onnx.NodeProto] | None:
    """Return Upsample, or Resize of version 10, as it is from version 11 on; None where it has no form.

    Coordinates are multiplied by a factor, and the nearest is below, or above where an axis becomes
    shorter. The version converter leaves that out, and what it makes has half pixels.
    """
    attributes = {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
    mode = attributes.get("mode", b"nearest")
    sizes = list(zip(types[node.input[0]].shape, types[node.output[0]].shape, strict=True))
    is_longer, is_shorter = any(a < b for a, b in sizes), any(a > b for a, b in sizes)
    if mode == b"nearest" and is_longer and is_shorter:
        return None
    scales, nodes = list(node.input[1:2]), list[onnx.NodeProto]()
    if not scales:
        scales = ["scales"]
        nodes.append(_constant("scales", np.array(attributes["scales"], np.float32)))
    return [
        *nodes,
        onnx.helper.make_node(
            "Resize",
            [node.input[0], "", *scales],
            list(node.output),
            mode=mode,
            coordinate_transformation_mode="asymmetric",
            nearest_mode="ceil" if is_shorter else "floor",
        ),
    ]


def _constant(name: str, value: Array) -> onnx.NodeProto:
    tensor = onnx.numpy_helper.from_array(value)
    return onnx.helper.make_node("Constant", [], [name], value=tensor)
