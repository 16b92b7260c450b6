"""Which files beside an ONNX model hold its tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import onnx
from onnx.external_data_helper import ExternalDataInfo, uses_external_data

from relational_tensat.formats.onnx_names import subgraphs


def external_locations(path: Path) -> list[str]:
    """Return the files, relative to a valid model's folder, that its tensors are in."""
    model = onnx.load(path, load_external_data=False)
    places = [
        *_tensors(model.graph.initializer, model.graph.node),
        *(tensor for function in model.functions for tensor in _tensors((), function.node)),
    ]
    names = (ExternalDataInfo(tensor).location for tensor in places if uses_external_data(tensor))
    return list(dict.fromkeys(names))


def _tensors(
    initializers: Iterable[onnx.TensorProto], nodes: Iterable[onnx.NodeProto]
) -> Iterator[onnx.TensorProto]:
    """Yield all tensors of a graph, those of subgraphs and attributes included."""
    yield from initializers
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
        for graph in subgraphs(node):
            yield from _tensors(graph.initializer, graph.node)
