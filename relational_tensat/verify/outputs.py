"""What a graph returns, as a flat list of named arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from relational_tensat.tensor import Array, Graph, tensors_of
from relational_tensat.verify.comparison import as_array
from relational_tensat.verify.evaluate import Weights, evaluate_as_typed, evaluate_graph
from relational_tensat.verify.unknown_operators import UnknownOperators


def output_names(graph: Graph) -> tuple[str, ...]:
    """Return a name for each tensor that the graph returns; parts of a tuple are numbered."""
    names: list[str] = []
    for name in graph.outputs:
        parts = tensors_of(graph.types[name])
        names += [name] if len(parts) == 1 else [f"{name}[{i}]" for i in range(len(parts))]
    return tuple(names)


def compute_outputs(
    graph: Graph,
    inputs: Mapping[str, Array],
    weights: Weights,
    unknown: UnknownOperators | None = None,
) -> list[Array]:
    """Return the tensors that the graph returns in float64, in order; tuples as their parts.

    Args:
        unknown: computes opaque operators.

    Raises:
        InputError: an operator cannot be computed.
    """
    with np.errstate(all="ignore"):  # what overflows is looked for, and explained, afterwards
        values = evaluate_graph(graph, inputs, weights, unknown)
    return flat_outputs(graph, values)


def compute_typed_outputs(
    graph: Graph,
    inputs: Mapping[str, Array],
    weights: Weights,
    unknown: UnknownOperators | None = None,
) -> list[Array]:
    """Return what ``compute_outputs`` does, every result rounded to its own element type.

    Raises:
        InputError: an operator cannot be computed.
    """
    return flat_outputs(graph, evaluate_as_typed(graph, inputs, weights, unknown))


def flat_outputs(graph: Graph, values: Mapping[str, Any]) -> list[Array]:
    """Return the tensors among a graph's outputs, in order; tuples as their parts."""
    flat: list[Any] = []
    for name in graph.outputs:
        flat += values[name] if isinstance(graph.types[name], tuple) else [values[name]]
    return [as_array(value) for value in flat]


def first_not_finite(
    graph: Graph,
    inputs: Mapping[str, Array],
    weights: Weights,
    unknown: UnknownOperators | None = None,
) -> tuple[str, str] | None:
    """Return the first value, in topological order, that is NaN or infinite, and its operator."""
    producers = {name: node.op for node in graph.nodes for name in node.outputs}
    all_values = Graph(
        graph.name, graph.inputs, graph.weights, graph.nodes, tuple(producers), graph.types
    )
    with np.errstate(all="ignore"):
        values = evaluate_graph(all_values, inputs, weights, unknown)
    for name, op in producers.items():
        value = values[name]
        parts = value if isinstance(value, tuple | list) else (value,)
        if not all(is_finite(as_array(part)) for part in parts):
            return name, op
    return None


def is_finite(array: Array) -> bool:
    """Whether no element is NaN or infinite."""
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())
