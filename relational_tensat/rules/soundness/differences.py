"""Whether it makes a difference, on one configuration, which way a decision of a target goes.

A wrong branch is seen only where it changes the result. It does not where all is clipped to 0, or where it
chooses the value of a border of no width. So the target is made again with the decision turned, and both
are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from relational_tensat.rules.instance import PreparedRule
from relational_tensat.rules.model import Apply, Call, Expr, Literal, Rule, Term, Var
from relational_tensat.rules.soundness.decisions import Decisions, Goal
from relational_tensat.rules.soundness.draws import RuleConfiguration
from relational_tensat.rules.soundness.sides import Sides, evaluate, parts, real
from relational_tensat.rules.soundness.tensor_values import KINDS, Values
from relational_tensat.tensor.field import Undefined


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
