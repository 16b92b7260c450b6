"""The requirements of a rule's conditions on operands and attributes, as far as drawing can look ahead.

A condition is checked as soon as all its variables are bound, so that a misfit is drawn again at once. One
that gives an attribute's value (``(= ?z …)``) is solved for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from relational_tensat.rules.functions import Inapplicable
from relational_tensat.rules.instance import Evaluate, PreparedRule, attr_vars, tensor_vars
from relational_tensat.rules.model import Apply, Call, Expr, Literal, Rule, Var, parts_of
from relational_tensat.rules.soundness.stress_instances import Landmarks
from relational_tensat.tensor.operators import Operator, get_operator
from relational_tensat.tensor.types import Attrs, TensorType


class Bindings:
    """The values of a rule's variables so far; None (and no key) if nothing is known."""

    def __init__(self, plan: DrawPlan) -> None:
        self._plan = plan
        self.types: list[TensorType | None] = [None] * len(plan.tensors)
        self.values: list[Any] = [None] * len(plan.attrs)
        self.bound: set[str] = set()

    def tensor(self, name: str) -> TensorType | None:
        """Return the type of a tensor variable."""
        return self.types[self._plan.tensors[name]]

    def bind_tensor(self, name: str, kind: TensorType) -> bool:
        """Bind a tensor variable; return whether every condition that is complete now holds."""
        self.types[self._plan.tensors[name]] = kind
        self.bound.add(name)
        return self._fine((name,))

    def bind_attrs(self, values: dict[str, Any]) -> None:
        """Bind attribute variables to what was found to be fine."""
        for name, value in values.items():
            self.values[self._plan.attrs[name]] = value
        self.bound.update(values)

    def are_fine(self, values: dict[str, Any]) -> bool:
        """Whether every condition that is complete with these attribute variables holds."""
        if not values:
            return True
        self.bind_attrs(values)
        fine = self._fine(tuple(values))
        self.bound.difference_update(values)
        return fine

    def solved(self, name: str) -> list[Any]:
        """Return the values that equations give an attribute variable."""
        solutions = []
        for equation in self._plan.equations.get(name, ()):
            if equation.variables <= self.bound:
                try:
                    # A bound variable has its type and value; an unbound one is not looked at.
                    solutions.append(equation.evaluate(self.types, self.values))  # type: ignore[arg-type]
                except Inapplicable:
                    continue
        return solutions

    def _fine(self, names: tuple[str, ...]) -> bool:
        for condition in self._plan.conditions_on(names):
            if condition.variables <= self.bound and not self._holds(condition):
                return False
        return True

    def _holds(self, condition: _Expression) -> bool:
        try:
            # As in ``solved``: an unbound variable is not looked at.
            return condition.evaluate(self.types, self.values) is True  # type: ignore[arg-type]
        except Inapplicable:
            return False


@dataclass(frozen=True, slots=True)
class _Expression:
    """A compiled expression and the variables in it."""

    variables: frozenset[str]
    evaluate: Evaluate


@dataclass(frozen=True, slots=True)
class SourceTerm:
    """An application in the sources, prepared for drawing.

    Attributes:
        constants: attributes that the rule gives a value, or leaves at their default.
        variables: the attributes that are variables, and their names.
        children: its operands: the names of variables, and applications.
        tensors: the names of the tensor variables in it.
    """

    op: str
    operator: Operator
    constants: Attrs
    variables: tuple[tuple[str, str], ...]
    children: tuple[str | SourceTerm, ...]
    tensors: frozenset[str]

    def preorder(self) -> Iterator[SourceTerm]:
        """Yield it and the applications below it."""
        yield self
        for child in self.children:
            if not isinstance(child, str):
                yield from child.preorder()


def _source_term(term: Apply) -> SourceTerm:
    operator, exprs = get_operator(term.op), dict(term.attrs)
    values = [(a.name, exprs.get(a.name, Literal(a.default))) for a in operator.attrs]
    children = tuple(
        child.name if isinstance(child, Var) else _source_term(child) for child in term.children
    )
    names = [{child} if isinstance(child, str) else child.tensors for child in children]
    return SourceTerm(
        term.op,
        operator,
        {name: value.value for name, value in values if isinstance(value, Literal)},
        tuple((attr, value.name) for attr, value in term.attrs if isinstance(value, Var)),
        children,
        frozenset[str]().union(*names),
    )


class DrawPlan:
    """A rule, prepared for drawing.

    Attributes:
        sources, terms: its sources, and all applications in them as ``source_nodes`` lists them.
        compiled: judges what was drawn.
        landmarks: the numbers and element types in it.
        tensors, attrs: the places of the variables.
        conditions: per variable, those that it occurs in.
        equations: per attribute variable, the value that it must be equal to.
    """

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.sources = tuple(map(_source_term, rule.sources))
        self.terms = tuple(term for source in self.sources for term in source.preorder())
        self.compiled = PreparedRule(rule)
        self.tensors = {name: i for i, name in enumerate(tensor_vars(rule))}
        self.attrs = {name: i for i, name in enumerate(attr_vars(rule))}
        self.landmarks = Landmarks(rule)
        self.conditions: dict[str, list[_Expression]] = {}
        self.equations: dict[str, list[_Expression]] = {}
        for condition in rule.conditions:
            self._add(condition)
        self._conditions_on: dict[tuple[str, ...], tuple[_Expression, ...]] = {}

    def conditions_on(self, names: tuple[str, ...]) -> tuple[_Expression, ...]:
        """Return the conditions that one of some variables occurs in, each once."""
        conditions = self._conditions_on.get(names)
        if conditions is None:
            by_id = {id(c): c for name in names for c in self.conditions.get(name, ())}
            conditions = self._conditions_on[names] = tuple(by_id.values())
        return conditions

    def _add(self, condition: Expr) -> None:
        prepared = self._prepared(condition)
        for name in prepared.variables:
            self.conditions.setdefault(name, []).append(prepared)
        for name, value in _equations(condition):
            if name in self.attrs:
                self.equations.setdefault(name, []).append(self._prepared(value))

    def _prepared(self, expr: Expr) -> _Expression:
        names = (part.name for part in parts_of(expr) if isinstance(part, Var))
        return _Expression(frozenset(names), self.compiled.expression(expr))


def _equations(condition: Expr) -> Iterator[tuple[str, Expr]]:
    """Yield (variable, value) for every equation in a condition, also under ``and`` and ``or``."""
    if not isinstance(condition, Call):
        return
    if condition.function in ("and", "or"):
        for arg in condition.args:
            yield from _equations(arg)
    elif condition.function in ("=", "close"):
        for left, right in (condition.args, tuple(reversed(condition.args))):
            if isinstance(left, Var):
                yield left.name, right
