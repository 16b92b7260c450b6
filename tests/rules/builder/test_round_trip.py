"""Every rule that is written as text can be built in Python, and is the same value."""

from __future__ import annotations

from dataclasses import replace

from relational_tensat.rules.builder import Tensor, Value, build_rules, fn, ops, rewrite
from relational_tensat.rules.builder.expressions import ValueLike
from relational_tensat.rules.library import load_rules, taso_rules
from relational_tensat.rules.model import Expr, Literal, Rule, Term, Var


def tensor(term: Term) -> Tensor:
    """Return a term as calls of ``ops``."""
    if isinstance(term, Var):
        return Tensor.variable(term.name)
    operator = getattr(ops, term.op)
    made = operator(*map(tensor, term.children), **{name: value(expr) for name, expr in term.attrs})
    assert isinstance(made, Tensor)
    return made


def value(expr: Expr) -> ValueLike:
    """Return an expression as calls of ``fn``."""
    if isinstance(expr, Var):
        return Value.variable(expr.name)
    if isinstance(expr, Literal):
        return expr.value
    made = getattr(fn, fn.python_name(expr.function))(*map(value, expr.args))
    assert isinstance(made, Value)
    return made


def condition(expr: Expr) -> Value | bool:
    made = value(expr)
    assert isinstance(made, Value | bool)
    return made


def built(rule: Rule) -> Rule:
    """Return the rule, built of its parts."""
    made = rewrite(*map(tensor, rule.sources)).to(*map(tensor, rule.targets))
    if rule.conditions:
        made = made.where(*map(condition, rule.conditions))
    if rule.worth:
        made = made.worth(*map(condition, rule.worth))
    (again,) = build_rules(
        rule.name.partition("[")[0], made, law=rule.law, symmetric=rule.symmetric,
        unsound=rule.unsound, rulesets=rule.rulesets, file=rule.file, line=rule.line,
    )  # fmt: skip
    return replace(again, name=rule.name)


def test_every_rule_that_ships_is_the_same_value_when_it_is_built() -> None:
    rules = [*load_rules(), *taso_rules()]
    assert len(rules) > 700
    assert [rule.name for rule in rules if built(rule) != rule] == []
