"""Versions of ONNX's operator sets: which are equal for an operator, and converting nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache

import numpy as np
import onnx
from onnx import version_converter

from relational_tensat.formats.onnx_names import all_nodes, subgraphs
from relational_tensat.formats.onnx_types import to_value_info
from relational_tensat.tensor import TensorType

#: What ONNX's inference raises: a class of its own for what does not fit, another for what cannot be.
INFERENCE_ERRORS = (onnx.shape_inference.InferenceError, ValueError)
#: Written where the model does not name the version that it was read from.
DEFAULT_OPSET = 20
#: Operators write themselves for this version of the default operator set and later ones.
OLDEST_WRITTEN_OPSET = 13


def candidates(preferred: int) -> Iterator[int]:
    """Yield the versions that a model may be written in: the preferred, later ones, older ones."""
    first = max(preferred, OLDEST_WRITTEN_OPSET)
    yield from range(first, onnx.defs.onnx_opset_version() + 1)
    yield from range(first - 1, OLDEST_WRITTEN_OPSET - 1, -1)


#: Operators whose meaning changed in a version although the version converter takes it for none.
_CHANGED = {"PRelu": 7, "Scan": 9}


@cache
def same_meaning(op_type: str, old: int, new: int) -> bool:
    """Whether an operator of the default set is the same in two versions of the set."""
    if old == new:
        return True
    try:
        schemas = [onnx.defs.get_schema(op_type, version, "") for version in (old, new)]
    except onnx.defs.SchemaError:
        return False
    return schemas[0].since_version == schemas[1].since_version and not schemas[1].deprecated


@cache
def _form(op_type: str, version: int) -> str | None:
    """Return how an operator of the default set is spelled in a version; None if it is not there."""
    try:
        schema = onnx.defs.get_schema(op_type, version, "")
    except onnx.defs.SchemaError:
        return None
    if schema.deprecated:
        return None
    attributes = [
        (name, str(attribute.type), attribute.required, str(attribute.default_value))
        for name, attribute in sorted(schema.attributes.items())
    ]
    values = [(value.name, str(value.option)) for value in (*schema.inputs, *schema.outputs)]
    return repr((attributes, values))


def has_same_form(node: onnx.NodeProto, old: int, new: int) -> bool:
    """Whether a node without subgraphs is spelled alike in two versions of the default set.

    Versions differ often in nothing but the element types that they take.
    """
    if node.domain not in ("", "ai.onnx") or any(True for _ in subgraphs(node)):
        return False
    if any(old < changed <= new for op, changed in _CHANGED.items() if op == node.op_type):
        return False
    form = _form(node.op_type, old)
    return form is not None and form == _form(node.op_type, new)


def is_unchanged(node: onnx.NodeProto, old: int, new: int) -> bool:
    """Whether a node and all in its subgraphs mean the same in two versions of the default set."""
    return all(
        inner.domain not in ("", "ai.onnx") or same_meaning(inner.op_type, old, new)
        for inner in all_nodes([node])
    )


def convert_node(
    node: onnx.NodeProto,
    types: Mapping[str, TensorType],
    imports: Mapping[str, int],
    version: int,
) -> list[onnx.NodeProto] | None:
    """Return nodes that compute in another version of the default set what ``node`` computes.

    Args:
        types: the types of the node's inputs, of the outer values that its subgraphs use, and of
            its outputs.
        imports: versions of the operator sets that the node is in.

    Returns:
        The nodes, in order; None when the version converter has no way.
    """
    if node.op_type == "PRelu" and imports[""] < 7:
        return _convert_prelu(node, types)
    if any(imports[""] < _CHANGED.get(inner.op_type, 0) <= version for inner in all_nodes([node])):
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
    tensor = onnx.numpy_helper.from_array(shape)
    return [
        onnx.helper.make_node("Constant", [], ["shape"], value=tensor),
        onnx.helper.make_node("Reshape", [node.input[1], "shape"], ["slope"]),
        onnx.helper.make_node("PRelu", [node.input[0], "slope"], list(node.output)),
    ]


def infer_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with the types that ONNX infers, strictly.

    Raises:
        onnx.shape_inference.InferenceError: the types of a node's operands do not fit.
    """
    # Data propagation fails on valid branches that use one outer value in several places.
    simple = not any(True for node in model.graph.node for _ in subgraphs(node))
    return onnx.shape_inference.infer_shapes(
        model, check_type=True, strict_mode=True, data_prop=simple
    )


def opset_imports(imports: Mapping[str, int]) -> list[onnx.OperatorSetIdProto]:
    """Return versions by domain as ONNX has them."""
    return [onnx.helper.make_opsetid(domain, imports[domain]) for domain in sorted(imports)]


def read_imports(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """Return versions by domain; the default domain is ``""``."""
    return {_domain(item.domain): item.version for item in imports}


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name
