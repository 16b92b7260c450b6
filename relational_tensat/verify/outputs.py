"""The outputs of a graph, as a flat list of named arrays; some cannot be compared.

Those depend on random numbers, or are an extremum of several elements that met NaN. ONNX leaves open
whether ReduceMax, ReduceMin and the largest of a window are NaN then. onnxruntime spreads NaN or passes
over it by its place in memory, which any rewriting may change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from relational_tensat.base.errors import InputError
from relational_tensat.tensor import Array, Graph, tensors_of
from relational_tensat.tensor.operators import get_operator
from relational_tensat.verify.comparison import as_array
from relational_tensat.verify.evaluate import (
    Weights,
    evaluate_as_typed,
    evaluate_graph,
    evaluate_together,
)
from relational_tensat.verify.unknown_operators import UnknownOperators


def random_positions(graph: Graph) -> frozenset[int]:
    """Return the positions, among the tensors that the graph returns, that are random."""
    random: set[str] = set()
    for node in graph.nodes:
        draws = get_operator(node.op).is_random(node.attrs)
        if draws or any(name in random for name in node.inputs):
            random.update(node.outputs)
    positions: set[int] = set()
    position = 0
    for name in graph.outputs:
        width = len(tensors_of(graph.types[name]))
        if name in random:
            positions.update(range(position, position + width))
        position += width
    return frozenset(positions)


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
    return compute_together(graph, [inputs], weights, unknown)[0]


def compute_together(
    graph: Graph,
    draws: Sequence[Mapping[str, Array]],
    weights: Weights,
    unknown: UnknownOperators | None = None,
) -> list[list[Array]]:
    """Return what ``compute_outputs`` does for each of several inputs.

    Raises:
        InputError: an operator cannot be computed.
    """
    # Overflows are looked for, and explained, afterwards.
    results = evaluate_together(graph, draws, weights, unknown)
    return [flat_outputs(graph, values) for values in results]


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


#: The outputs of several runs.
Runs: TypeAlias = Sequence[Sequence[Array]]


class DefinedElements:
    """The elements of a model's outputs that are the same whether extrema pass over NaN or not."""

    def __init__(
        self, graph: Graph, draws: Sequence[Mapping[str, Array]], weights: Weights
    ) -> None:
        """Compute the graph both ways.

        Args:
            draws: inputs of every run. Where the graph cannot be computed, all counts as defined.
        """
        self._names = output_names(graph)
        try:
            self._undefined = [_undefined(graph, inputs, weights) for inputs in draws]
        except InputError:
            self._undefined = []

    @property
    def warnings(self) -> tuple[str, ...]:
        """The outputs that are not compared, a sentence for each."""
        counts = [
            sum(int(mask.sum()) for mask in masks) for masks in zip(*self._undefined, strict=True)
        ]
        return tuple(
            f"{count:,} elements of output {name!r} are not compared: they depend on a maximum or "
            "minimum that met NaN, which runtimes spread or pass over"
            for name, count in zip(self._names, counts, strict=False)
            if count
        )

    def only(self, runs: Runs) -> Runs:
        """Return outputs in which what is not defined is NaN, 0 among integers."""
        if not self._undefined:
            return runs
        return [
            [_blanked(array, mask) for array, mask in zip(outputs, masks, strict=True)]
            for outputs, masks in zip(runs, self._undefined, strict=True)
        ]


def _undefined(graph: Graph, inputs: Mapping[str, Array], weights: Weights) -> list[Array]:
    spread, skipped = (
        flat_outputs(graph, evaluate_as_typed(graph, inputs, weights, skips_nan=skips))
        for skips in (False, True)
    )
    return [_differ(a, b) for a, b in zip(spread, skipped, strict=True)]


def _differ(a: Array, b: Array) -> Array:
    if a.dtype.kind not in "fiub":
        return np.zeros(a.shape, bool)
    both_nan = (a != a) & (b != b)
    return np.asarray((a != b) & ~both_nan)


def _blanked(array: Array, mask: Array) -> Array:
    if array.shape != mask.shape or not mask.any():
        return array
    return np.where(mask, array.dtype.type(np.nan if array.dtype.kind == "f" else 0), array)
