"""``explain --check``: every tensor that a step replaces is computed both ways, on the same values.

Operands are random inputs and weights, in float64. A step leaves all other tensors as they are. So equal
tensors at its place make equal graphs. In the end the extracted graph is run as a whole, beside the
original.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from relational_tensat.certificate.both_ways import BothWays
from relational_tensat.certificate.term_table import AppliedTerm
from relational_tensat.explain.explanation import Explanation
from relational_tensat.explain.graphs import graph_of
from relational_tensat.explain.rewrite import changed_terms
from relational_tensat.tensor import Array
from relational_tensat.tensor.types import ValueType
from relational_tensat.verify import verify
from relational_tensat.verify.equivalence import evaluation_tolerance
from relational_tensat.verify.inputs import RandomWeights, draw_inputs


@dataclass(frozen=True, slots=True)
class NumericCheck:
    """The comparisons, and their errors.

    Attributes:
        tensors: how many replaced tensors were compared.
        max_relative_error: the largest difference found at one of them, or at an output.
        tolerance: the largest that passes.
        failures: one line for each tensor that is not equal; empty if all are.
        step_errors: the largest difference that each step makes, in order.
    """

    tensors: int
    max_relative_error: float
    tolerance: float
    failures: tuple[str, ...]
    step_errors: tuple[float, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether everything was equal."""
        return not self.failures


def check_numerically(explanation: Explanation) -> NumericCheck:
    """Compute and compare what every step replaces, and the graphs at both ends.

    Raises:
        InputError: an operator cannot be computed for these values.
    """
    original, result = (
        graph_of(outputs, explanation.terms, explanation.stored, explanation.names)
        for outputs in (explanation.original, explanation.result)
    )
    verification = verify(original, result, seed=0, runs=1)
    failures = [verification.failure()] if verification.failure() else []
    worst = max((check.max_relative_error for check in verification.outputs), default=0.0)
    tolerance = evaluation_tolerance(original)
    inputs = draw_inputs(original, 0, verification.shrink, {})
    weights = RandomWeights(original, 0, verification.shrink)
    values = BothWays(_ExplainedTerms(explanation), inputs, weights)
    tensors = 0
    step_errors = []
    for step, rewrite in zip(explanation.steps, explanation.rewrites, strict=True):
        step_errors.append(0.0)
        for replaced, place in zip(rewrite.replaced, step.at, strict=True):
            tensors += 1
            pair = replaced.before, replaced.after
            error = values.difference(*pair, rewrite.operands, tolerance)
            worst = max(worst, error)
            step_errors[-1] = max(step_errors[-1], error)
            if error > tolerance:
                failures.append(
                    f"step {step.number}, {step.rule}: {place.tensor} differs by {error:.2e}"
                )
        for replaced in rewrite.replaced:
            values.assume_equal(replaced.after, replaced.before)
        for changed in changed_terms(explanation.terms, rewrite):
            values.assume_equal(changed.new, changed.old)
    return NumericCheck(tensors, worst, tolerance, tuple(failures), tuple(step_errors))


class _ExplainedTerms:
    """The terms of an explanation, as values are computed of."""

    data: Mapping[int, Array] = MappingProxyType({})

    def __init__(self, explanation: Explanation) -> None:
        self._terms = explanation.terms
        self._signatures = explanation.stored.signatures

    def __getitem__(self, term: int) -> AppliedTerm:
        symbol = self._signatures[self._terms[term].signature].symbol
        return AppliedTerm(symbol.op, symbol.attrs, self._terms[term].children)

    def type(self, term: int) -> ValueType:
        return self._signatures[self._terms[term].signature].type
