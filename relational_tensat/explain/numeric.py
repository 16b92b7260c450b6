"""``explain --check``: every tensor that a step replaces is computed both ways, on the same values.

Operands are random inputs and weights, in float64. What a step does not replace it leaves as it is, so
tensors that are equal where a rule was applied make graphs that are. In the end the extracted graph is
run as a whole, beside the original.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from relational_tensat.explain.explanation import Explanation
from relational_tensat.explain.graphs import graph_of
from relational_tensat.explain.rewrite import RewriteStep
from relational_tensat.tensor import Array, numpy_dtype, tensors_of
from relational_tensat.tensor.operators import get_operator
from relational_tensat.verify import verify
from relational_tensat.verify.comparison import relative_error
from relational_tensat.verify.equivalence import evaluation_tolerance
from relational_tensat.verify.inputs import RandomWeights, draw_inputs
from relational_tensat.verify.unknown_operators import UnknownOperators

#: The parts of a value: one array, or those of a tuple.
Parts: TypeAlias = tuple[Array, ...]

#: Differences so much smaller than the operands are rounding: what is left where large numbers cancel.
_ROUNDING = 1e-11

#: Most bytes of values in memory; others are computed again when they are needed.
_KEPT_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class NumericCheck:
    """What was compared.

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


def check_numerically(explanation: Explanation, seed: int = 0) -> NumericCheck:
    """Compute and compare what every step replaces, and the graphs at both ends.

    Raises:
        InputError: an operator cannot be computed for these values.
    """
    original, result = (
        graph_of(outputs, explanation.terms, explanation.stored, explanation.names)
        for outputs in (explanation.original, explanation.result)
    )
    verification = verify(original, result, seed=seed, runs=1)
    failures = [verification.failure()] if verification.failure() else []
    worst = max((check.max_relative_error for check in verification.outputs), default=0.0)
    tolerance = evaluation_tolerance(original)
    inputs = draw_inputs(original, seed, verification.shrink, {})
    weights = RandomWeights(original, seed, verification.shrink)

    def leaf(op: str, name: str) -> Array:
        return inputs[name] if op == "input" else weights[name]

    values = _Values(explanation, leaf)
    tensors = 0
    step_errors = []
    with np.errstate(all="ignore"):  # what overflows is infinite on both sides
        for step, rewrite in zip(explanation.steps, explanation.rewrites, strict=True):
            step_errors.append(0.0)
            for replaced, place in zip(rewrite.replaced, step.at, strict=True):
                tensors += 1
                error = values.difference(rewrite, replaced.before, replaced.after, tolerance)
                worst = max(worst, error)
                step_errors[-1] = max(step_errors[-1], error)
                if error > tolerance:
                    failures.append(
                        f"step {step.number}, {step.rule}: {place.tensor} differs by {error:.2e}"
                    )
            values.follow(rewrite)
    return NumericCheck(tensors, worst, tolerance, tuple(failures), tuple(step_errors))


class _Values:
    """The values of terms; terms that steps made equal have one."""

    def __init__(self, explanation: Explanation, leaf: Callable[[str, str], Array]) -> None:
        self._terms = explanation.terms
        self._signatures = explanation.stored.signatures
        self._leaf = leaf
        self._predecessor: dict[int, int] = {}  # of a term that replaced another, that other
        self._cache: OrderedDict[int, Parts] = OrderedDict()
        self._bytes = 0
        self._unknown = UnknownOperators()

    def difference(self, rewrite: RewriteStep, before: int, after: int, tolerance: float) -> float:
        """Return the relative error between a term and what replaces it; 0 for one that is rounding.

        Args:
            tolerance: smaller errors are not localized.
        """
        old, new = self._value(self._original(before)), self._value(after)
        errors = [relative_error(a, b) for a, b in zip(old, new, strict=True)]
        if max(errors, default=0.0) > tolerance:
            operands = [self._value(self._original(term)) for term in rewrite.operands]
            scale = max((_largest(part) for parts in operands for part in parts), default=0.0)
            for index, (a, b) in enumerate(zip(old, new, strict=True)):
                if _is_rounding(a, b, scale):
                    errors[index] = 0.0
        return max(errors, default=0.0)

    def follow(self, rewrite: RewriteStep) -> None:
        """Take note of the terms that a step made equal: what it replaced, and all that uses it."""
        replaced = {(replacement.before, replacement.after) for replacement in rewrite.replaced}
        pending = list(zip(rewrite.before, rewrite.after, strict=True))
        visited = set(pending)
        while pending:
            pair = old, new = pending.pop()
            if old == new:
                continue
            if self._original(new) != self._original(old):
                self._predecessor.setdefault(new, self._original(old))
            if pair not in replaced:
                below = zip(self._terms[old].children, self._terms[new].children, strict=True)
                pairs_below = set(below) - visited
                visited |= pairs_below
                pending += pairs_below

    def _original(self, term: int) -> int:
        while term in self._predecessor:
            term = self._predecessor[term]
        return term

    def _value(self, term: int) -> Parts:
        """Return the value of a term, computed from the values of its operands if it is not in memory."""
        local: dict[int, Parts] = {}
        stack = [term]
        while stack:
            current = stack[-1]
            if current in local:
                stack.pop()
                continue
            if current in self._cache:
                self._cache.move_to_end(current)
                local[current] = self._cache[current]
                continue
            children = [self._original(child) for child in self._terms[current].children]
            waiting = [child for child in children if child not in local]
            if waiting:
                stack.extend(waiting)
                continue
            local[current] = self._compute(current, [local[child] for child in children])
            self._keep(current, local[current])
        return local[term]

    def _compute(self, term: int, operands: list[Parts]) -> Parts:
        stored = self._signatures[self._terms[term].signature]
        symbol, attrs = stored.symbol, dict(stored.symbol.attrs)
        if symbol.op in ("input", "weight"):
            kind = tensors_of(stored.type)[0]
            value = np.asarray(self._leaf(symbol.op, str(attrs["name"])))
            return (value.astype("float64" if kind.is_float else numpy_dtype(kind.dtype)),)
        operand_types = [
            parts if isinstance(kind, tuple) else parts[0]
            for parts, kind in zip(operands, stored.operands, strict=True)
        ]
        result: Any
        if symbol.op == "opaque":
            result = self._unknown.compute(operand_types, stored.operands, attrs)
        else:
            result = get_operator(symbol.op).evaluate_typed(operand_types, stored.operands, attrs)
        parts = result if isinstance(stored.type, tuple) else (result,)
        return tuple(np.asarray(part) for part in parts)

    def _keep(self, term: int, value: Parts) -> None:
        self._cache[term] = value
        self._bytes += _nbytes(value)
        while self._bytes > _KEPT_BYTES and len(self._cache) > 1:
            _, oldest = self._cache.popitem(last=False)
            self._bytes -= _nbytes(oldest)


def _nbytes(value: Parts) -> int:
    return sum(part.nbytes if any(part.strides) else 0 for part in value)  # not of one number


def _is_rounding(a: Array, b: Array, scale: float) -> bool:
    """Whether two arrays of floats differ by no more than operands of that size leave behind."""
    if a.shape != b.shape or a.dtype.kind != "f" or b.dtype.kind != "f":
        return False
    difference: NDArray[np.float64] = a.astype(np.float64) - b.astype(np.float64)
    return bool((np.abs(difference) <= _ROUNDING * scale).all())


def _largest(array: Array) -> float:
    """Return the largest finite absolute value; 0 for what are no floats."""
    if array.dtype.kind != "f" or array.size == 0:
        return 0.0
    sizes = np.abs(array)
    finite = np.isfinite(sizes)
    return float(sizes[finite].max()) if finite.any() else 0.0
