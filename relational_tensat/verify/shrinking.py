"""Random inputs and weights, made smaller where a graph overflows at full size.

A network without normalization (attention without softmax is cubic in its input) can leave even
float64 at ordinary sizes, and an output that is infinite everywhere proves nothing. Step ``k`` has
inputs of ``8**-k`` and random weights of ``2**-k`` times their ordinary size.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from relational_tensat.tensor import DTYPE_BYTES, Array, Graph, TensorType
from relational_tensat.verify.evaluate import Weights, converted, random_inputs, seeded_weights

#: More steps than this do not help.
LAST_STEP = 4

_INPUTS = 1 / 8
_WEIGHTS = 1 / 2

#: Random weights of at most so many bytes, as they are stored, are drawn once instead of for each run.
_FEW_BYTES = 1 << 28


def draw_inputs(
    graph: Graph, seed: int, step: int, real_inputs: Mapping[str, Array]
) -> dict[str, Array]:
    """Return the real inputs, and random ones for the others, smaller by ``step``.

    Raises:
        InputError: an input that is missing cannot be drawn.
    """
    missing = {name: kind for name, kind in graph.inputs.items() if name not in real_inputs}
    open_graph = Graph(graph.name, missing, graph.weights, graph.nodes, graph.outputs, graph.types)
    random_arrays = random_inputs(open_graph, seed)
    return {
        **{name: _smaller(array, _INPUTS**step) for name, array in random_arrays.items()},
        **real_inputs,
    }


class RandomWeights:
    """Random weights for a graph and for all that was made of it; drawn on access.

    ``[name]`` is a weight as it is stored; called, it is the same in the element type that operators
    are computed in.
    """

    def __init__(self, graph: Graph, seed: int, step: int = 0, *, keep: bool = True) -> None:
        """Prepare to draw.

        Args:
            step: how many times they are made smaller.
            keep: whether they will be used again, and may be cached unless they are large.
        """
        self._weights = seeded_weights(graph, seed)
        self._factor = _WEIGHTS**step
        kinds = [weight.type for weight in graph.weights.values()]
        self._cache: dict[str, Array] | None = None
        if keep and sum(map(_stored_bytes, kinds)) <= _FEW_BYTES:
            self._cache = {}

    def __call__(self, name: str, kind: TensorType) -> Array:
        """Return the weight of that name for computing with it: floats in float64."""
        if self._cache is None:
            return self._weights.draw(name, self._factor, "float64")
        return converted(self[name], np.dtype("float64")) if kind.is_float else self[name]

    def __getitem__(self, name: str) -> Array:
        if self._cache is None:
            return self._weights.draw(name, self._factor)
        if name not in self._cache:
            self._cache[name] = self._weights.draw(name, self._factor)
        return self._cache[name]


def _stored_bytes(kind: TensorType) -> int:
    """Return how much a weight takes: bfloat16 is held as float32."""
    return kind.size * (4 if kind.dtype == "bfloat16" else DTYPE_BYTES.get(kind.dtype, 1))


def own_weights(graph: Graph, random_weights: RandomWeights) -> Weights:
    """Return the weights that the graph has, and random ones where it has no data."""

    def value(name: str, kind: TensorType) -> Array:
        data = graph.weights[name].data
        return random_weights(name, kind) if data is None else data

    return value


def describe_step(step: int, *, weights: bool) -> str:
    """Return how the inputs (and weights) of a step are called in reports; "" for step 0."""
    if not step:
        return ""
    return f" times {_INPUTS**step:g}" + (f", weights times {_WEIGHTS**step:g}" if weights else "")


def _smaller(array: Array, factor: float) -> Array:
    if factor == 1.0 or array.dtype.kind != "f":
        return array
    return np.asarray(array * array.dtype.type(factor))  # type: ignore[operator]
