"""How far rounding alone moves a graph's outputs: what no comparison of rounded values can beat.

Networks whose weights are all alike give huge logits, whose last digits decide a softmax. There two
correct files differ visibly in float32, and comparing them proves nothing about either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from relational_tensat.base.errors import InputError
from relational_tensat.tensor import Array, Graph, Node, TensorType
from relational_tensat.tensor.floats import FLOAT_FORMATS
from relational_tensat.tensor.mask_inputs import find_masks
from relational_tensat.verify.comparison import Comparison, relative_error
from relational_tensat.verify.evaluate import Weights, evaluate_disturbed, weight_of
from relational_tensat.verify.outputs import compute_outputs, compute_typed_outputs, flat_outputs
from relational_tensat.verify.unknown_operators import UnknownOperators

#: What is computed is off by so many roundings: sums of many terms round at each.
_COARSER = 32.0
#: Runs that are rounded otherwise.
_RUNS = 4
#: The relative error of rounding to an element type.
_ROUNDING = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}


def excuse_rounding(
    comparison: Comparison,
    graph: Graph,
    inputs: Mapping[str, Array],
    weights: Weights,
    seed: int,
    unknown: UnknownOperators | None = None,
    *,
    large_sums: bool = False,
) -> None:
    """Take errors that rounding alone explains out of a comparison; these outputs prove nothing.

    Args:
        graph, inputs, weights: the original, and what it was compared on.
        seed: of the rounding errors.
        unknown: computes opaque operators.
        large_sums: count what another order of sums moves, too: a summand that is large in a whole row (a
            mask of -10000) leaves few digits to others. One that leaves none to them moves nothing.
    """
    if comparison.ok:
        return
    try:
        moved = moved_by_rounding(graph, inputs, weights, seed, unknown)
        if large_sums:
            exact = compute_typed_outputs(graph, inputs, weights, unknown)
            for operand in (0, 1):
                halved = _added_in_halves(graph, operand)
                other = compute_typed_outputs(halved, inputs, weights, unknown)
                errors = [relative_error(a, b) for a, b in zip(exact, other, strict=True)]
                moved = [max(pair) for pair in zip(moved, errors, strict=True)]
        comparison.excuse(moved, "rounding alone")
    except InputError:
        return  # an operator cannot be computed here: nothing is known, nothing is excused


def moved_by_rounding(
    graph: Graph,
    inputs: Mapping[str, Array],
    weights: Weights,
    seed: int,
    unknown: UnknownOperators | None = None,
) -> list[float]:
    """Return, per output, how far two runs are apart at most, of which all or one rounds otherwise.

    Inputs, weights and what is to be quantized are off by ``_COARSER`` roundings; no smaller difference
    passes a quantization. The error is what comes out, never a multiple of it: one step is no sign of two.

    Masks are not moved: what is about 1 is no mask, and (1 - mask) times the lowest number far from 0 then.

    Raises:
        InputError: an operator cannot be computed.
    """
    # Of opaque operators: the next number to a factor of Resize is another size.
    fixed = {name for node in graph.nodes if node.op == "opaque" for name in node.inputs}
    masks = find_masks(graph)
    results = [compute_outputs(graph, inputs, weights, unknown)]
    for number in range(_RUNS):
        rng = np.random.default_rng([seed, number])

        def value(name: str, kind: TensorType, rng: np.random.Generator = rng) -> Array:
            weight = weight_of(weights, name, kind)
            return weight if name in fixed else _perturb(weight, kind, rng)

        moved_inputs = {
            name: inputs[name] if name in masks else _perturb(inputs[name], kind, rng)
            for name, kind in graph.inputs.items()
        }
        disturbed = evaluate_disturbed(
            graph, moved_inputs, value, unknown, partial(_perturb, rng=rng)
        )
        results.append(flat_outputs(graph, disturbed))
    return [
        max(relative_error(a, b) for a, b in combinations(outputs, 2))
        for outputs in zip(*results, strict=True)
    ]


def _added_in_halves(graph: Graph, operand: int) -> Graph:
    """Return a graph whose sums and differences of floats take in one of their operands half by half."""
    nodes: list[Node] = []
    types = dict(graph.types)
    for node in graph.nodes:
        kind = graph.types[node.outputs[0]]
        if node.op not in ("add", "sub") or not (isinstance(kind, TensorType) and kind.is_float):
            nodes.append(node)
            continue
        other = node.inputs[1 - operand]
        half, first = (f"{node.outputs[0]}'{part}" for part in ("half", "first"))
        types |= {half: graph.types[node.inputs[operand]], first: kind}
        operands = (half, other) if operand == 0 else (other, half)
        nodes += [
            Node("smul", (node.inputs[operand],), (half,), {"value": 0.5}),
            Node(node.op, operands, (first,)),
            Node("add" if operand == 0 else node.op, (first, half), node.outputs),
        ]
    return replace(graph, nodes=tuple(nodes), types=types)


def _perturb(array: Any, kind: TensorType, rng: np.random.Generator) -> Array:
    """Return an array with each row and each column off by roundings, up or down.

    Infinities and numbers about the lowest of the type stay as they are: they are masks, and what
    tells one such number from the next is no rounding.
    """
    if not kind.is_float:
        return np.asarray(array)
    moved = exact = np.asarray(array, dtype=np.float64)
    for axis in {0, kind.rank - 1} if kind.rank else ():
        shape = [1] * kind.rank
        shape[axis] = kind.shape[axis]
        signs = rng.choice((-1.0, 1.0), size=shape)
        moved = moved * (1.0 + _COARSER * _ROUNDING[kind.dtype] * signs)
    return np.where(FLOAT_FORMATS[kind.dtype].is_mask(exact), exact, moved)
