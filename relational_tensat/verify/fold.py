"""Folding: parts that depend on weights only are computed once, before the graph is written.

Of a graph that is known at several sizes, only what is the same at all of them is folded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from relational_tensat.tensor import (
    DTYPE_BYTES,
    Array,
    Graph,
    Node,
    TensorType,
    ValueType,
    Weight,
    build_graph,
)
from relational_tensat.tensor.operators import get_operator
from relational_tensat.verify.evaluate import evaluate_nodes, memory_bytes, peak_bytes

#: Elements that say of most arrays that not all are equal.
_FEW = 16


def fold_weights(graph: Graph) -> Graph:
    """Return the graph with every value that is computable from weights' data as a weight itself.

    The values are computed operator by operator, each result in its own element type; they keep their
    names. These stay nodes: values that depend on a weight without data, random operators, tuples, and
    constants (``fill``), which are small as they are. Weights and nodes that nothing reads any more are
    dropped. A graph in which nothing changes is returned as it is.

    Constant tensors stay small: a result whose elements are all equal is a broadcast view of one.

    Raises:
        InputError: an operator cannot be computed for the weights' values.
    """
    values = evaluate_weight_only(graph).items()
    return _with_weights(graph, {name: _compact(value) for name, value in values})


def evaluate_weight_only(graph: Graph) -> dict[str, Array]:
    """Compute values that depend on nothing but weights that have data: these can be stored instead.

    Of a whole sub-graph of such values, only those that other nodes or the outputs use are returned.
    Constants (``fill``) count as known but are small as they are. A node stays one if it is random, gives
    no tensor of numbers, has no kernel in onnxruntime, or unpacks quantized weights. All stay if the
    machine has not the memory to compute them.

    Returns:
        Values by name, as ``evaluate_nodes`` gives them.

    Raises:
        InputError: an operator cannot be computed for these values.
    """
    data = {name: w.data for name, w in graph.weights.items() if w.data is not None}
    nodes, names = foldable_values(graph, data)
    nodes = _needed(nodes, names)
    machine = memory_bytes()
    if machine is not None and peak_bytes(graph, nodes, names) > machine:
        return {}
    return evaluate_nodes(graph, nodes, names, data)


def assume_folded(graph: Graph) -> Graph:
    """Return the graph as ``fold_weights`` would if all weights had data, without computing any.

    A part that depends on weights only becomes a weight without data: enough to see how long a graph takes.
    """
    _, names = foldable_values(graph, graph.weights)
    return _with_weights(graph, dict.fromkeys(names))


def foldable_values(graph: Graph, weights: Iterable[str]) -> tuple[list[Node], list[str]]:
    """Return the nodes that depend on nothing but these weights, and which of their results are used.

    See ``evaluate_weight_only``.
    """
    constants = set(weights)
    foldable: list[Node] = []
    for node in graph.nodes:
        if all(name in constants for name in node.inputs) and _is_foldable(graph, node):
            foldable.append(node)
            constants.update(node.outputs)
    computed = (node for node in foldable if not get_operator(node.op).is_constant)
    results = {name for node in computed for name in node.outputs}
    inside = {id(node) for node in foldable}
    operands = set(graph.outputs)
    for node in graph.nodes:
        if id(node) not in inside:
            operands.update(node.inputs)
    return foldable, [
        name for node in foldable for name in node.outputs if name in results & operands
    ]


def _is_foldable(graph: Graph, node: Node) -> bool:
    kinds = [graph.types[name] for name in node.outputs]
    if any(not isinstance(kind, TensorType) or kind.dtype not in DTYPE_BYTES for kind in kinds):
        return False
    operands = tuple(graph.types[name] for name in node.inputs)
    operator = get_operator(node.op)
    return operator.is_foldable(node.attrs) and operator.can_evaluate(operands, node.attrs)


def _needed(nodes: list[Node], values: Iterable[str]) -> list[Node]:
    """Return the nodes, in order, that these values depend on."""
    names = set(values)
    result = []
    for node in reversed(nodes):
        if names.intersection(node.outputs):
            result.append(node)
            names.update(node.inputs)
    return result[::-1]


def _with_weights(graph: Graph, values: Mapping[str, Array | None]) -> Graph:
    """Return the graph with values as weights instead, and without what nothing reads any more."""
    needed = set(graph.outputs)
    nodes = []
    for node in reversed(graph.nodes):
        if any(name in needed and name not in values for name in node.outputs):
            nodes.append(node)
            needed.update(node.inputs)
    weights = {name: weight for name, weight in graph.weights.items() if name in needed}
    for name, value in values.items():
        kind = graph.types[name]
        if name in needed and isinstance(kind, TensorType):
            weights[name] = Weight(kind, value)
    if len(nodes) == len(graph.nodes) and weights.keys() == graph.weights.keys():
        return graph
    return build_graph(
        graph.name,
        graph.inputs,
        weights,
        nodes[::-1],
        graph.outputs,
        graph.metadata,
        origin=graph.origin,
    )


def _compact(array: Array) -> Array:
    """Return the array as it is stored; one whose elements are all equal as a view of a single element.

    Its file is written at each of several sizes: a transposed view would be copied each time.
    """
    is_likely = array.size > 1 and bool((array.flat[:_FEW] == array.flat[0]).all())  # few are
    if is_likely and bool((array == array.flat[0]).all()):
        return np.broadcast_to(array.flat[0], array.shape)
    return np.asarray(array, order="C")


def fold_alike(graphs: Sequence[Graph]) -> list[Graph]:
    """Return the graphs with what depends on weights only as weights, where that is so at all sizes.

    A value of weights that has another shape at another size, or follows from such a one, stays computed.

    Args:
        graphs: the same nodes and weights, with other attributes and types.

    Raises:
        InputError: an operator cannot be computed for the weights' values.
    """
    first = graphs[0]
    varying = _varying(graphs)
    apart = [node for node in first.nodes if not varying.isdisjoint(node.outputs)]
    outside = {name: first.types[name] for node in apart for name in node.outputs}
    inputs = {name: kind for name, kind in outside.items() if isinstance(kind, TensorType)}
    if len(inputs) < len(outside):  # tuples are no inputs
        return [first, *graphs[1:]]
    operands = dict.fromkeys(name for node in apart for name in node.inputs)
    outputs = dict.fromkeys((*first.outputs, *(n for n in operands if n not in inputs)))
    rest = build_graph(
        first.name,
        {**first.inputs, **inputs},
        first.weights,
        [node for node in first.nodes if varying.isdisjoint(node.outputs)],
        outputs,
    )
    folded = fold_weights(rest)
    kept = {node.outputs for node in (*folded.nodes, *apart)}
    weights = {name: weight.type for name, weight in folded.weights.items()}

    def part(graph: Graph) -> Graph:
        """Return a part of a graph that was checked: all values have the types that they had."""
        nodes = tuple(node for node in graph.nodes if node.outputs in kept)
        types: dict[str, ValueType] = {**graph.inputs, **weights}
        types |= {name: graph.types[name] for node in nodes for name in node.outputs}
        return replace(graph, weights=folded.weights, nodes=nodes, types=types)

    return [part(graph) for graph in graphs]


def _varying(graphs: Sequence[Graph]) -> set[str]:
    """Return the values that differ from size to size and depend on no input."""
    first, others = graphs[0], graphs[1:]
    attributes = [{node.outputs: node.attrs for node in graph.nodes} for graph in others]
    constant = set(first.weights)
    varying: set[str] = set()
    for node in first.nodes:
        if not constant.issuperset(node.inputs):
            continue
        constant.update(node.outputs)
        has_others = any(attrs[node.outputs] != node.attrs for attrs in attributes) or any(
            graph.types[name] != first.types[name] for graph in others for name in node.outputs
        )
        if has_others or not varying.isdisjoint(node.inputs):
            varying.update(node.outputs)
    return varying
