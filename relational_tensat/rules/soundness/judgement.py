"""Whether a law holds on one configuration: exactly where it can be decided, else in float64.

A law that fails over the field may still be about real numbers: relu(relu(x)) = relu(x) does not
hold for every function. It is wrong only if it fails in float64 as well.

A wrong branch of a target is seen only where it changes the result. ``Differences`` makes the target again
with the decision turned, and computes both.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from typing import Any

import numpy as np

from relational_tensat.rules.instance import Instance, PreparedRule
from relational_tensat.rules.model import Apply, Call, Expr, Literal, Rule, Term, Var
from relational_tensat.rules.soundness.decisions import Decisions, Goal
from relational_tensat.rules.soundness.draws import RuleConfiguration
from relational_tensat.rules.soundness.requirements import DrawPlan
from relational_tensat.rules.soundness.sides import (
    Compute,
    Sides,
    evaluate,
    exact,
    has_floats,
    is_small,
    parts,
    real,
    sides,
)
from relational_tensat.rules.soundness.tensor_values import KINDS, Values
from relational_tensat.tensor.field import Field, Undefined
from relational_tensat.tensor.operators import get_operator

#: How far two float64 results may be apart, relative to the largest number met on the way: a chain
#: of a thousand roundings (1e-13) stays below it, a constant that is off by 1e-9 does not.
TOLERANCE = 1e-11
#: Operands that lead to larger numbers than that prove nothing: rounding would hide differences.
_LARGEST = 1e6
#: Smaller ones are compared as if they had that size: nothing relates to less than rounding.
_SMALLEST = 1e-3


class LawOutcome(Enum):
    """The outcome on one configuration."""

    HOLDS = "holds"
    FAILS = "fails"
    #: The left side has no value that could be compared.
    UNDEFINED = "undefined"


@dataclass
class Judge:
    """Judges configurations of one rule.

    Attributes:
        floats: float64 only, since the law fails over the field where it holds for real numbers.
        unsettled: how often it failed over the field, and float64 could not tell: numbers are too large.
    """

    plan: DrawPlan
    seed: int
    floats: bool = False
    unsettled: int = field(default=0, init=False)
    _field: Field = field(init=False)

    def __post_init__(self) -> None:
        self._field = Field(self.seed)

    def sides(self, configuration: RuleConfiguration) -> Sides | None:
        """Return both sides on a configuration; None where it does not apply, or is too large."""
        both = sides(self.plan.compiled, configuration)
        return both if both is not None and is_small(both) else None

    def holds(self, configuration: RuleConfiguration, sides: Sides) -> LawOutcome:
        """Judge a configuration; may change to float64 for good."""
        if not sides.agree_in_type():
            return LawOutcome.FAILS
        values = Values(configuration, sides.left, self.seed)
        if not self.floats:
            outcome = _judge_exactly(sides, values, self._field)
            if outcome is not LawOutcome.FAILS or tells_nan(sides):
                return outcome
        outcome = _judge_in_floats(sides, values)
        if outcome is LawOutcome.UNDEFINED and not self.floats:
            self.unsettled += 1
        if outcome is LawOutcome.HOLDS:
            self.floats = True
        return outcome

    def tells(self, configuration: RuleConfiguration, sides: Sides) -> bool:
        """Whether a result has elements that differ, or a single one that is not 0.

        One that is the same everywhere may be so whatever a factor or an axis: it bears little out.
        """
        values = Values(configuration, sides.left, self.seed)
        for kind in KINDS:
            with np.errstate(all="ignore"), suppress(Undefined):
                results = evaluate(sides.left, values.reals(kind), real)
                if any(map(_differs, _roots(sides.left, results))):
                    return True
        return False


def _differs(result: Any) -> bool:
    finite = result[np.isfinite(result)]
    first = finite[0] if finite.size else 0
    return bool(first != 0) if result.size == 1 else bool(np.any(finite != first))


def tells_nan(sides: Sides) -> bool:
    """Whether a side tells NaN from numbers: then real numbers, which have none, bear nothing out."""
    nodes = (*sides.left.nodes, *sides.right.nodes)
    return any(get_operator(node.op).tells_nan for node in nodes)


def _judge_exactly(sides: Sides, values: Values, field: Field) -> LawOutcome:
    """Compare the two sides modulo a prime.

    On residues other than 0, which say whether the two are the same formula. If the right side divides, on
    some zeros, too, since it may then have no value where the left side has one. So for integers, whose
    operators are no formulas.
    """
    outcome = _compare_exactly(sides, values.residues(), field)
    divides = any(get_operator(node.op).divides for node in sides.right.nodes)
    if outcome is LawOutcome.HOLDS and (divides or not all(map(has_floats, sides.var_types))):
        with_zeros = _compare_exactly(sides, values.residues(zeros=True), field)
        outcome = outcome if with_zeros is LawOutcome.UNDEFINED else with_zeros
    return outcome


def _compare_exactly(sides: Sides, operands: Sequence[Any], field: Field) -> LawOutcome:
    results = evaluate_both(sides, operands, exact(field))
    if isinstance(results, LawOutcome):
        return results
    left, right = results
    same = _identical(_roots(sides.left, left), _roots(sides.right, right))
    return LawOutcome.HOLDS if same else LawOutcome.FAILS


def evaluate_both(
    sides: Sides, operands: Sequence[Any], compute: Compute
) -> tuple[list[Any], list[Any]] | LawOutcome:
    """Return what ``sides.evaluate`` returns for the left and the right side.

    UNDEFINED where the left side has no value, FAILS where only the right side has none.
    """
    try:
        left = evaluate(sides.left, operands, compute)
    except Undefined:
        return LawOutcome.UNDEFINED
    try:
        return left, evaluate(sides.right, operands, compute)
    except Undefined:
        return LawOutcome.FAILS


def _judge_in_floats(sides: Sides, values: Values) -> LawOutcome:
    """Compare the two sides in float64, on operands of every kind, wherever the left is finite."""
    outcome = LawOutcome.UNDEFINED
    for kind in KINDS:
        operands = values.reals(kind)
        kind_outcome, _ = compared_in_floats(sides, operands)
        if kind_outcome is LawOutcome.FAILS:
            return kind_outcome
        if kind_outcome is LawOutcome.HOLDS:
            outcome = kind_outcome
    return outcome


@dataclass(frozen=True, slots=True)
class Element:
    """The first element that differs.

    Attributes:
        source: the index of the source and its target.
        part: of a result that is a tuple, the index of the tensor.
        left, right: its values.
    """

    source: int
    part: int | None
    index: tuple[int, ...]
    left: Any
    right: Any


def compared_in_floats(sides: Sides, operands: Sequence[Any]) -> tuple[LawOutcome, Element | None]:
    """Compare the two sides in float64; with the first element that differs, if both have values."""
    with np.errstate(all="ignore"):
        results = evaluate_both(sides, operands, real)
        if isinstance(results, LawOutcome):
            return results, None
        left, right = results
        scale = max(_magnitude(left), _magnitude(right))
        if scale > _LARGEST:
            return LawOutcome.UNDEFINED, None
        return _compare_roots(sides, left, right, TOLERANCE * max(scale, _SMALLEST))


def _compare_roots(
    sides: Sides, left: Sequence[Any], right: Sequence[Any], tolerance: float
) -> tuple[LawOutcome, Element | None]:
    outcome = LawOutcome.UNDEFINED
    for source, (a, b) in enumerate(zip(sides.left.roots, sides.right.roots, strict=True)):
        pairs = list(zip(parts(left[a]), parts(right[b]), strict=True))
        for part, (left_part, right_part) in enumerate(pairs):
            if np.shape(left_part) != np.shape(right_part):
                return LawOutcome.FAILS, None
            defined = np.isfinite(left_part)
            distance = np.abs(_number(left_part) - _number(right_part))
            close = distance <= tolerance  # False for no number
            wrong = np.argwhere(defined & ~close)
            if len(wrong):
                at = tuple(wrong[0].tolist())
                number = part if isinstance(left[a], tuple) else None
                element = Element(source, number, at, left_part[at].item(), right_part[at].item())
                return LawOutcome.FAILS, element
            if defined.any():
                outcome = LawOutcome.HOLDS
    return outcome, None


def _number(array: Any) -> Any:
    """Return booleans as numbers, which can be subtracted."""
    return array.astype(np.int64) if array.dtype == bool else array


def _roots(instance: Instance, results: Sequence[Any]) -> list[Any]:
    return [part for root in instance.roots for part in parts(results[root])]


def _identical(left: Sequence[Any], right: Sequence[Any]) -> bool:
    return len(left) == len(right) and all(map(np.array_equal, left, right))


def _magnitude(results: Sequence[Any]) -> float:
    """Return the largest finite number among float results, the operands' included."""
    largest = 0.0
    for result in results:
        for part in parts(result):
            if part.dtype.kind == "f" and part.size:
                finite = np.abs(part[np.isfinite(part)])
                largest = max(largest, float(finite.max(initial=0.0)))
    return largest


class Differences:
    """The changes that turned decisions make to one rule's targets."""

    def __init__(self, rule: Rule, decisions: Decisions, seed: int) -> None:
        self._rule = rule
        self._decisions = decisions
        self._seed = seed
        self._turned = cache(self._prepared)

    def matters(self, goal: Goal, configuration: RuleConfiguration, sides: Sides) -> bool:
        """Whether another outcome gives another result; true of what no target decides."""
        prepared = self._turned(goal)
        if prepared is None:
            return True
        other = prepared.targets(configuration.symbols, configuration.var_types)
        if other is None:  # nothing that could be built: who tries it sees that
            return True
        if other == sides.right:
            return False
        values = Values(configuration, sides.left, self._seed)
        for kind in KINDS:
            operands = values.reals(kind)
            with np.errstate(all="ignore"), suppress(Undefined):
                one, another = (evaluate(side, operands, real) for side in (sides.right, other))
                if not _same(
                    [one[root] for root in sides.right.roots],
                    [another[root] for root in other.roots],
                ):
                    return True
        return False

    def _prepared(self, goal: Goal) -> PreparedRule | None:
        """Return the rule with the other outcome in its targets; None if no target decides that."""
        decision = self._decisions.decisions[goal.place]
        if decision.hidden:
            return None
        targets = tuple(
            _with(target, decision.expr, Literal(not goal.outcome)) for target in self._rule.targets
        )
        if targets == self._rule.targets:
            return None
        return PreparedRule(replace(self._rule, targets=targets, conditions=()))


def _with(term: Term, old: Expr, new: Expr) -> Term:
    if isinstance(term, Var):
        return term
    children = tuple(_with(child, old, new) for child in term.children)
    return Apply(term.op, children, tuple((k, _with_value(v, old, new)) for k, v in term.attrs))


def _with_value(expr: Expr, old: Expr, new: Expr) -> Expr:
    if expr == old:
        return new
    if not isinstance(expr, Call):
        return expr
    return Call(expr.function, tuple(_with_value(arg, old, new) for arg in expr.args))


def _same(one: Sequence[Any], another: Sequence[Any]) -> bool:
    pairs = zip(one, another, strict=True)
    return all(
        np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind == "f")
        for left, right in pairs
        for a, b in zip(parts(left), parts(right), strict=True)
    )
