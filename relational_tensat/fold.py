"""Folding: what depends on weights only is computed once, before the graph is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from relational_tensat.graph import (
    Array,
    Graph,
    Node,
    TensorType,
    Weight,
    build_graph,
    numpy_dtype,
)
from relational_tensat.ops import get_operator


def fold_weights(graph: Graph) -> Graph:
    """Return the graph with every value that is computable from weights' data as a weight itself.

    The values are computed in float64 and rounded to their own element type; they keep their names.
    Values that depend on a weight without data stay nodes, as do opaque operators and tuples.
    Weights that nothing reads any more are dropped. A graph in which nothing folds and no weight is
    unused is returned as it is.

    Constant tensors stay small: a result whose elements are all equal is a broadcast view of one.
    """
    known: dict[str, Array] = {
        name: weight.data for name, weight in graph.weights.items() if weight.data is not None
    }
    kept = [node for node in graph.nodes if not _fold_node(node, graph, known)]
    read = {name for node in kept for name in node.inputs} | set(graph.outputs)
    weights = {name: weight for name, weight in graph.weights.items() if name in read}
    for node in graph.nodes:
        for name in node.outputs:
            kind = graph.types[name]
            if name in known and name in read and isinstance(kind, TensorType):
                weights[name] = Weight(kind, known[name])
    if len(kept) == len(graph.nodes) and len(weights) == len(graph.weights):
        return graph
    return build_graph(
        graph.name, graph.inputs, weights, kept, graph.outputs, graph.metadata, where=graph.name
    )


def _fold_node(node: Node, graph: Graph, known: dict[str, Array]) -> bool:
    """Compute a node whose operands are all known, into ``known``; return whether it was."""
    kinds = [graph.types[name] for name in node.outputs]
    if node.op == "opaque" or any(name not in known for name in node.inputs):
        return False
    if not all(isinstance(kind, TensorType) for kind in kinds):
        return False
    operator = get_operator(node.op)
    types = tuple(graph.types[name] for name in node.inputs)
    operands = [_widened(known[name]) for name in node.inputs]
    result: Any = operator.evaluate_typed(operands, types, node.attrs)
    parts = result if operator.multi_output else (result,)
    for name, kind, part in zip(node.outputs, kinds, parts, strict=True):
        if isinstance(kind, TensorType):
            known[name] = _rounded(np.asarray(part), kind)
    return True


def _widened(array: Array) -> Array:
    """Return a floating array in float64, still a broadcast view if it was one."""
    if array.dtype.kind != "f" or array.dtype == np.float64:
        return array
    if _is_broadcast_scalar(array):
        return np.broadcast_to(array.flat[0].astype(np.float64), array.shape)
    return array.astype(np.float64)


def _rounded(array: Array, kind: TensorType) -> Array:
    """Return the array in its declared element type, as a view of one element if all are equal."""
    dtype = numpy_dtype(kind.dtype)
    if array.size > 1:
        first = array.flat[0]
        if _is_broadcast_scalar(array) or bool((array == first).all()):
            return np.broadcast_to(first.astype(dtype), array.shape)
    return array.astype(dtype)


def _is_broadcast_scalar(array: Array) -> bool:
    return array.size > 1 and not any(
        stride for stride, length in zip(array.strides, array.shape, strict=True) if length > 1
    )


def folded_away(before: Graph, after: Graph) -> Mapping[str, int]:
    """Return how many nodes of each operator folding removed, by name."""
    left = after.count_ops()
    counts = {op: count - left.get(op, 0) for op, count in before.count_ops().items()}
    return {op: count for op, count in counts.items() if count}
