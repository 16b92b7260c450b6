"""The papers' models in another element type: as they are, float32 becomes it everywhere."""

from __future__ import annotations

from dataclasses import replace

from relational_tensat.tensor import Graph, TensorType, Weight, build_graph, numpy_dtype

FLOAT32 = "float32"
#: What the models are measured in.
ELEMENT_TYPES = (FLOAT32, "float16")


def with_element_type(graph: Graph, dtype: str) -> Graph:
    """Return a graph whose float32 inputs, weights and constants are of another type.

    >>> from bench.models import MODELS
    >>> half = with_element_type(MODELS["vgg19"](), "float16")
    >>> {kind.dtype for kind in half.types.values()}
    {'float16'}
    """
    if dtype == FLOAT32:
        return graph
    weights = {}
    for name, weight in graph.weights.items():
        data, kind = weight.data, _converted(weight.type, dtype)
        if data is not None and kind != weight.type:
            data = data.astype(numpy_dtype(dtype))
        weights[name] = Weight(kind, data)
    nodes = [
        replace(node, attrs={**node.attrs, "dtype": dtype})
        if node.attrs.get("dtype") == FLOAT32
        else node
        for node in graph.nodes
    ]
    inputs = {name: _converted(kind, dtype) for name, kind in graph.inputs.items()}
    return build_graph(graph.name, inputs, weights, nodes, graph.outputs, graph.metadata)


def _converted(kind: TensorType, dtype: str) -> TensorType:
    return TensorType(dtype, kind.shape) if kind.dtype == FLOAT32 else kind
