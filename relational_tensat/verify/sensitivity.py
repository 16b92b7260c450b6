"""How far rounding alone moves a graph's outputs: what no comparison of rounded values can beat.

Networks whose weights are all alike give huge logits, whose last digits decide a softmax. There two
correct files differ visibly in float32, and comparing them proves nothing about either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relational_tensat.base.errors import InputError
from relational_tensat.tensor import Array, Graph, TensorType
from relational_tensat.verify.comparison import Comparison, relative_error
from relational_tensat.verify.evaluate import Weights, weight_of
from relational_tensat.verify.outputs import compute_outputs
from relational_tensat.verify.unknown_operators import UnknownOperators

#: The relative error of rounding to an element type.
_ROUNDING = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}


def excuse_rounding(
    comparison: Comparison,
    graph: Graph,
    inputs: Mapping[str, Array],
    weights: Weights,
    seed: int,
    unknown: UnknownOperators | None = None,
) -> None:
    """Take errors that rounding alone explains out of a comparison; these outputs prove nothing.

    Args:
        graph, inputs, weights: the original, and what it was compared on.
        seed: of the rounding errors.
        unknown: computes opaque operators.
    """
    if comparison.ok:
        return
    try:
        comparison.excuse(_sensitivity(graph, inputs, weights, seed, unknown))
    except InputError:
        return  # an operator cannot be computed here: nothing is known, nothing is excused


def _sensitivity(
    graph: Graph,
    inputs: Mapping[str, Array],
    weights: Weights,
    seed: int,
    unknown: UnknownOperators | None,
) -> Sequence[float]:
    """Return, per output, the relative change when inputs and weights are rounded differently."""
    rng = np.random.default_rng(seed)
    # Of opaque operators: the next number to a factor of Resize is another size.
    fixed = {name for node in graph.nodes if node.op == "opaque" for name in node.inputs}

    def value(name: str, kind: TensorType) -> Array:
        weight = weight_of(weights, name, kind)
        return weight if name in fixed else _perturb(weight, kind, rng)

    moved_inputs = {name: _perturb(inputs[name], kind, rng) for name, kind in graph.inputs.items()}
    exact = compute_outputs(graph, inputs, weights, unknown)
    moved = compute_outputs(graph, moved_inputs, value, unknown)
    return [relative_error(a, b) for a, b in zip(exact, moved, strict=True)]


def _perturb(array: Any, kind: TensorType, rng: np.random.Generator) -> Array:
    """Return an array with each row and each column off by one rounding error, up or down."""
    if not kind.is_float:
        return np.asarray(array)
    moved = np.asarray(array, dtype=np.float64)
    for axis in {0, kind.rank - 1} if kind.rank else ():
        shape = [1] * kind.rank
        shape[axis] = kind.shape[axis]
        moved = moved * (1.0 + _ROUNDING[kind.dtype] * rng.choice((-1.0, 1.0), size=shape))
    return moved
