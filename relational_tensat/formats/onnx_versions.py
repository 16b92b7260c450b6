"""In which versions of the operator sets a graph is written: the file's own wherever that can be.

Nodes in another version of the default operator set are converted, and compared where they can be run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import numpy as np
import onnx
from onnx import version_converter

from relational_tensat.base.errors import ModelError, UsageError
from relational_tensat.formats.onnx_keep import Kept
from relational_tensat.formats.onnx_metadata import (
    CHANGED,
    DEFAULT_OPSET,
    INFERENCE_ERRORS,
    OLDEST_POSSIBLE_OPSET,
    OLDEST_WRITTEN_OPSET,
    candidates,
    has_same_form,
    infer_shapes,
    is_unchanged,
    opset_imports,
    written_imports,
)
from relational_tensat.formats.onnx_names import all_nodes
from relational_tensat.formats.onnx_node import condense, differ_on_random
from relational_tensat.formats.onnx_opaque import decode
from relational_tensat.formats.onnx_types import to_value_info
from relational_tensat.tensor import Array, Graph, Node, TensorType, tensors_of
from relational_tensat.tensor.graph import describe
from relational_tensat.tensor.operators import get_operator


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


#: Operators that are written as no node, or as the same in every version.
_VERSIONLESS = ("noop", "part", "fill")


def check_opset(opset: int | None) -> None:
    """Check that a version of the default operator set can be written.

    Raises:
        UsageError: it is older or newer than those that can.
    """
    newest = onnx.defs.onnx_opset_version()
    if opset is not None and not OLDEST_POSSIBLE_OPSET <= opset <= newest:
        raise UsageError(f"opset = {opset}, expected {OLDEST_POSSIBLE_OPSET} to {newest}")


def is_writable(graph: Graph) -> bool:
    """Whether some version of ONNX's operators has all that the graph's opaque nodes need."""
    own = written_imports(graph.metadata).get("", DEFAULT_OPSET)
    if own >= OLDEST_WRITTEN_OPSET:  # and what was read can be written as it was
        return True
    try:
        choose_imports(graph, {})
    except ModelError:
        return False
    return True


def choose_imports(
    graph: Graph, kept: Mapping[str, Kept], opset: int | None = None
) -> dict[str, int]:
    """Return the operator set versions in which all of the graph can be written.

    The default set's is the model's own, or the first in which every operator that is not the file's is one
    node, if that is later. Norms that took many nodes to spell and were recognised shall not be spelled
    again.

    Args:
        kept: the file's nodes of the graph, by values.
        opset: the version of the default operator set, if it is not to be chosen.

    Raises:
        ModelError: no versions will do.
    """
    imports = written_imports(graph.metadata)
    opaque = [node for node in graph.nodes if node.op == "opaque"]
    versions = []
    for node in opaque:
        domain, version = cast(str, node.attrs["domain"]), cast(int, node.attrs["opset"])
        if domain:
            imports[domain] = max(version, imports.get(domain, 0))
        else:
            versions.append(version)
    own = imports.get("", max(versions, default=DEFAULT_OPSET))
    refused: list[ModelError] = []
    for version in _versions(graph, kept, own) if opset is None else [opset]:
        imports[""] = version
        printed = _printed_nodes(opaque, kept, own, version)
        failed = next(
            (node for node in printed if opaque_nodes(graph, node, imports) is None), None
        )
        if failed is None:
            return imports
        refused.append(
            ModelError(
                f"{describe(failed)}: the ONNX operator {failed.attrs['op_type']} of version"
                f" {failed.attrs['opset']} has no form in version {version} of the operator set"
            )
        )
    raise refused[0]


def _printed_nodes(
    nodes: Sequence[Node], kept: Mapping[str, Kept], own: int, version: int
) -> Iterator[Node]:
    """Yield the nodes that are not the file's, or cannot be in another version of the default set.

    Args:
        own: the version that the file has.
    """
    for node in nodes:
        own_node = next((kept[name] for name in node.outputs if name in kept), None)
        if own_node is None or not stays(own_node.unit.node, own, version):
            yield node


def check_older(model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto], version: int) -> None:
    """Check that nodes written for ``OLDEST_WRITTEN_OPSET`` mean the same in an older version.

    Args:
        model: with these nodes, and that version of the default set.

    Raises:
        ModelError: one does not; names its operator.
    """
    for node in nodes:
        if not stays(node, version, OLDEST_WRITTEN_OPSET):
            raise ModelError(f"{node.op_type} is not in version {version} as it is written")
    try:
        infer_shapes(model)
    except INFERENCE_ERRORS as error:
        raise ModelError(f"not in version {version}: {condense(str(error))}") from None


def stays(node: onnx.NodeProto, own: int, version: int) -> bool:
    """Whether a node of the file means the same in another version of the default operator set."""
    return is_unchanged(node, own, version) or has_same_form(node, own, version)


def _versions(graph: Graph, kept: Mapping[str, Kept], own: int) -> Iterator[int]:
    """Yield the versions that the graph may be written in, the preferred first."""
    printed = [
        node for node in _printed_nodes(graph.nodes, kept, own, own) if node.op not in _VERSIONLESS
    ]
    if all(node.op == "opaque" for node in printed):  # what no later version has stays as it was
        yield own
    yield from candidates(max([own, *(get_operator(node.op).onnx_since for node in printed)]))


def opaque_nodes(graph: Graph, node: Node, imports: dict[str, int]) -> list[onnx.NodeProto] | None:
    """Return the ONNX nodes, with indexed names, of an opaque node, or None.

    It is the payload's node if that means the same in the version of the default operator set that is
    written, else the node that ONNX's version converter makes of it.
    """
    proto = decode(cast(str, node.attrs["payload"]))
    own_imports = {**imports, cast(str, node.attrs["domain"]): cast(int, node.attrs["opset"])}
    version = imports[""]
    if node.attrs["domain"] or is_unchanged(proto, own_imports[""], version):
        return [proto]
    known = {
        f"i{index}": np.asarray(graph.weights[name].data)
        for index, name in enumerate(node.inputs)
        if name in graph.weights and graph.weights[name].data is not None
    }
    kinds = enumerate(tensor_types(graph, node.inputs))
    results = enumerate(tensor_types(graph, node.outputs))
    types = {f"i{index}": kind for index, kind in kinds}
    types |= {f"o{index}": kind for index, kind in results}
    if any(isinstance(graph.types[name], tuple) for name in node.inputs):
        known = {}  # they are not numbered alike
    return convert_node(proto, types, own_imports, version, known)


def tensor_types(graph: Graph, values: Sequence[str]) -> list[TensorType]:
    """Return the tensors that values are."""
    return [part for value in values for part in tensors_of(graph.types[value])]
