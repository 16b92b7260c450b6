"""A μGraph in floating point: in float64 against its program, and in the element type that it will have."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from relational_tensat.mugraph.graph.arithmetic import Elements, Numbers
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.verify.random_tests import check_signature, paired, renamed_inputs


def relative_error(
    program: MuGraph, graph: MuGraph, seed: int, dtype: str = "float64", scale: float | None = None
) -> float:
    """Return how far a μGraph computed in an element type is from its program in float64.

    Args:
        program: what it shall compute.
        graph: the μGraph.
        seed: of the inputs, which are normal; without their signs where the program has no result of them,
            as the root of what is negative.
        dtype: what the μGraph is computed in, sums in float32 at least.
        scale: of all inputs; by default, so that a product of two over the longest dim is about 1.

    Returns:
        The norm of the difference by that of the program's result, the largest of all outputs; infinite
        where a result is not finite.

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
        difference = float(np.linalg.norm((other.astype(np.float64) - one).ravel()))
        errors.append(difference / float(np.linalg.norm(one.ravel())))
    return max(error if math.isfinite(error) else math.inf for error in errors)


def _exact(program: MuGraph, values: Mapping[str, Elements]) -> dict[str, Elements]:
    exact = {name: value.astype(np.float64) for name, value in values.items()}
    return evaluate(program, exact, Numbers())


def drawn(program: MuGraph, seed: int, scale: float | None, dtype: str) -> dict[str, Elements]:
    """Return normal inputs."""
    generator = np.random.default_rng([seed, 64])
    longest = max(dim.size for dims in program.inputs.values() for dim in dims)
    factor = longest**-0.25 if scale is None else scale
    return {
        name: (factor * generator.standard_normal([dim.size for dim in dims])).astype(dtype)
        for name, dims in program.inputs.items()
    }
