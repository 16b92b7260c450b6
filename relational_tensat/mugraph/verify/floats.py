"""A μGraph in floating point: in float64 against its program, and in the element type that it will have."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from relational_tensat.mugraph.graph.arithmetic import Elements, Numbers
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.verify.random_tests import check_signature, paired, renamed_inputs

#: By how much normal inputs are multiplied: all, or each by its name.
Scale: TypeAlias = float | Mapping[str, float] | None
#: Of such inputs sums of 64 are beyond float16, whose largest is 65,504.
_LARGE, _MOST = 1e4, 6e4


def relative_error(
    program: MuGraph, graph: MuGraph, seed: int, dtype: str = "float64", scale: Scale = None
) -> float:
    """Return how far a μGraph computed in an element type is from its program in float64.

    Args:
        program: what it shall compute.
        graph: the μGraph.
        seed: of the inputs, which are normal; without their signs where the program has no result of them,
            as the root of what is negative.
        dtype: what the μGraph is computed in, sums in float32 at least.
        scale: of all inputs, or of each by name; by default, so that a product of two over the longest dim
            is about 1.

    Returns:
        The norm of the difference by that of the program's result, the largest of all outputs; infinite
        where a result is not finite, unless conditions leave nothing and the program has the same there.

    Raises:
        VerificationError: the two have other inputs or outputs.
    """
    check_signature(program, graph)
    values = drawn(program, seed, scale, dtype)
    expected = _exact(program, values)
    if not all(np.isfinite(value).all() for value in expected.values()):
        values = {name: np.abs(value) for name, value in values.items()}
        expected = _exact(program, values)
    computed = evaluate(graph, renamed_inputs(program, graph, values, 0), Numbers(dtype))
    errors = []
    for _, one, other in paired(program, graph, expected, computed):
        errors.append(_error(one, other.astype(np.float64), has_choices(program)))
    return max(error if math.isfinite(error) else math.inf for error in errors)


def has_choices(program: MuGraph) -> bool:
    """Whether a program chooses by conditions, which may leave nothing: it has NaN there then."""
    return any(step.op == "keep" for step in program.operators)


def _error(expected: Elements, computed: Elements, has_nan: bool) -> float:
    """Return the norm of the difference by that of the expected; NaN may have to be where that has it."""
    if has_nan and not np.isfinite(expected).all():
        is_finite = np.isfinite(expected)
        if not is_finite.any() or not np.array_equal(
            expected[~is_finite], computed[~is_finite], equal_nan=True
        ):
            return math.inf
        expected, computed = expected[is_finite], computed[is_finite]
    difference = float(np.linalg.norm((computed - expected).ravel()))
    return difference / float(np.linalg.norm(expected.ravel())) if difference else 0.0


def _exact(program: MuGraph, values: Mapping[str, Elements]) -> dict[str, Elements]:
    exact = {name: value.astype(np.float64) for name, value in values.items()}
    return evaluate(program, exact, Numbers())


def level_error(program: MuGraph, graph: MuGraph, seed: int, free: Sequence[str]) -> float | None:
    """Return the error in float16 where all exponentials are equal and what they weigh is large.

    Sums of what they weigh are then beyond float16, unless they are divided before they are stored.

    Args:
        program, graph, seed: as for ``relative_error``.
        free: the inputs that no exponential depends on.

    Returns:
        The error; None where the program's own result is beyond float16, or there are no such inputs.
    """
    scale = {name: _LARGE if name in free else 0.0 for name in program.inputs}
    expected = _exact(program, drawn(program, seed, scale, "float16")).values()
    largest = max(float(np.nanmax(np.abs(value), initial=0.0)) for value in expected)
    if not 0 < largest < _MOST:
        return None
    return relative_error(program, graph, seed, "float16", scale)


def drawn(program: MuGraph, seed: int, scale: Scale, dtype: str) -> dict[str, Elements]:
    """Return normal inputs; of bools each element is 1 or 0."""
    generator = np.random.default_rng([seed, 64])
    longest = max(dim.size for dims in program.inputs.values() for dim in dims)
    factors = scale if isinstance(scale, Mapping) else {}
    factor = longest**-0.25 if scale is None or isinstance(scale, Mapping) else scale
    values = {
        name: factors.get(name, factor) * generator.standard_normal([dim.size for dim in dims])
        for name, dims in program.inputs.items()
    }
    values |= {name: values[name] > 0 for name in program.conditions}
    return {name: value.astype(dtype) for name, value in values.items()}
