"""Folding a graph that is known at several sizes: what is the same at all of them."""

from __future__ import annotations

from collections.abc import Sequence

from relational_tensat.tensor import Graph, TensorType, build_graph
from relational_tensat.verify.fold import fold_weights


def fold_alike(graphs: Sequence[Graph]) -> list[Graph]:
    """Return the graphs with what depends on weights only as weights, where that is so at all sizes.

    What is computed from weights and has another shape at another size, or follows from what has, stays
    computed.

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
    return [
        build_graph(
            graph.name,
            graph.inputs,
            folded.weights,
            [node for node in graph.nodes if node.outputs in kept],
            graph.outputs,
            graph.metadata,
            origin=graph.origin,
        )
        for graph in graphs
    ]


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
