"""In which versions of the operator sets a graph is written: the file's own wherever that can be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import numpy as np
import onnx

from relational_tensat.base.errors import ModelError, UsageError
from relational_tensat.formats.onnx_conversion import convert_node
from relational_tensat.formats.onnx_keep import Kept
from relational_tensat.formats.onnx_metadata import written_imports
from relational_tensat.formats.onnx_opaque import decode
from relational_tensat.formats.onnx_opset import (
    DEFAULT_OPSET,
    OLDEST_WRITTEN_OPSET,
    candidates,
    has_same_form,
    is_unchanged,
)
from relational_tensat.tensor import Graph, Node, TensorType, tensors_of
from relational_tensat.tensor.graph import describe
from relational_tensat.tensor.operators import get_operator

#: What is written as no node, or as the same in every version.
_VERSIONLESS = ("noop", "part", "fill")


def check_opset(opset: int | None) -> None:
    """Check that a version of the default operator set can be written.

    Raises:
        UsageError: it is older or newer than those that can.
    """
    newest = onnx.defs.onnx_opset_version()
    if opset is not None and not OLDEST_WRITTEN_OPSET <= opset <= newest:
        raise UsageError(f"opset = {opset}, expected {OLDEST_WRITTEN_OPSET} to {newest}")


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

    The default set's is the model's own, or the first in which every operator that is not the file's is
    one node, if that is later: norms that took many nodes to spell and were recognised shall not be
    spelled again.

    Args:
        kept: what the file has of the graph, by values.
        opset: the version of the default operator set, if it is not to be chosen.

    Raises:
        ModelError: there are none.
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
        printed = printed_nodes(opaque, kept, own, version)
        failed = next(
            (node for node in printed if opaque_nodes(graph, node, imports) is None), None
        )
        if failed is None:
            return imports
        refused.append(_unwritable(failed, version))
    raise refused[0]


def printed_nodes(
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


def stays(node: onnx.NodeProto, own: int, version: int) -> bool:
    """Whether a node of the file means the same in another version of the default operator set."""
    return is_unchanged(node, own, version) or has_same_form(node, own, version)


def _versions(graph: Graph, kept: Mapping[str, Kept], own: int) -> Iterator[int]:
    """Yield the versions that the graph may be written in, the preferred first."""
    printed = [
        node for node in printed_nodes(graph.nodes, kept, own, own) if node.op not in _VERSIONLESS
    ]
    if all(node.op == "opaque" for node in printed):  # what no later version has stays as it was
        yield own
    yield from candidates(max([own, *(get_operator(node.op).onnx_since for node in printed)]))


def opaque_nodes(graph: Graph, node: Node, imports: dict[str, int]) -> list[onnx.NodeProto] | None:
    """Return the ONNX nodes, with indexed names, of an opaque node; None if there are none.

    It is the payload's node where it means the same in the version of the default operator set
    that is written, else what ONNX's version converter makes of it.
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


def _unwritable(node: Node, version: int) -> ModelError:
    return ModelError(
        f"{describe(node)}: the ONNX operator {node.attrs['op_type']} of version"
        f" {node.attrs['opset']} has no form in version {version} of the operator set"
    )
