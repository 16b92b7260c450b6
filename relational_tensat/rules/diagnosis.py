"""Why a rule does not apply to a configuration: the reason that ``instantiate`` leaves unsaid.

The verdict is ``instantiate``'s. Only if it says no does this look for the first check that fails, in the
order in which a rule is judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from relational_tensat.base.errors import ShapeError, UnsoundRuleError
from relational_tensat.rules.functions import Inapplicable, get_function
from relational_tensat.rules.instance import (
    Instance,
    PreparedRule,
    Types,
    attr_vars,
    compiled_rule,
    holds_constant,
    source_nodes,
    tensor_vars,
    type_text,
)
from relational_tensat.rules.model import (
    KNOWN,
    Apply,
    Call,
    Expr,
    Literal,
    Rule,
    Term,
    Var,
    constant_text,
    expr_text,
    term_text,
)
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import Attrs, ValueType

Symbols = Sequence[tuple[str, Attrs]]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that a rule requires of a configuration.

    Attributes:
        stage: ``operator`` (the sources' operators and constants), ``attribute`` (a variable stands
            for one value), ``where``, ``worth``, ``target`` (its operands fit), or ``type`` (the
            target's type is its source's).
        requirement: the variable, the condition or the target's term, in the rule language.
    """

    stage: str
    requirement: str


#: Checks that the matcher has already made of every match.
OPERATORS = Check("operator", "operators and constants")


@dataclass(frozen=True, slots=True)
class Refusal:
    """The first check that a configuration does not pass, and what there is instead."""

    check: Check
    actual: str


def checks(rule: Rule) -> tuple[Check, ...]:
    """Return the checks of a rule, in the order in which it is judged; types do not tell known values."""
    checklist = [OPERATORS]
    checklist += [Check("attribute", f"?{name}") for name in _repeated_attributes(rule)]
    checklist += [Check("where", expr_text(condition)) for condition in rule.conditions]
    checklist += [Check("worth", expr_text(c)) for c in rule.worth if not _is_about_known(c)]
    checklist += [Check("target", term_text(term)) for term in _target_terms(rule)]
    checklist += [Check("type", term_text(source)) for source in rule.sources]
    return tuple(checklist)


def diagnose(
    rule: Rule, symbols: Symbols, var_types: Types, root_types: Types
) -> Instance | Refusal:
    """Judge a rule on one configuration as ``instantiate`` does, and report what it fails for."""
    try:
        instance = compiled_rule(rule).instantiate(symbols, var_types, root_types)
    except UnsoundRuleError:
        instance = None
    if instance is not None:
        return instance
    return _Diagnosis(rule, symbols, var_types, root_types).refusal()


def facts(
    rule: Rule, symbols: Symbols, var_types: Types, root_types: Types
) -> list[tuple[str, str]]:
    """Return the conditions of a rule that applies to a configuration, each with its values there."""
    diagnosis = _Diagnosis(rule, symbols, var_types, root_types)
    return [(expr_text(condition), diagnosis.facts(condition)) for condition in rule.conditions]


class _Diagnosis:
    def __init__(self, rule: Rule, symbols: Symbols, var_types: Types, root_types: Types) -> None:
        self._rule = rule
        self._symbols = symbols
        self._types = var_types
        self._roots = root_types
        self._compiled: PreparedRule = compiled_rule(rule)
        self._tensors = dict(zip(tensor_vars(rule), var_types, strict=True))
        self._values: list[Any] = []

    def refusal(self) -> Refusal:
        """Return the first check that is not passed."""
        values = self._compiled.bind(self._symbols)
        if values is None:
            return self._unbound()
        self._values = values
        if self._compiled.has_extreme_scale(self._symbols, self._types):
            return Refusal(OPERATORS, "smul by a number that is extreme in its type")
        for stage, conditions in (("where", self._rule.conditions), ("worth", self._rule.worth)):
            for condition in conditions:
                reason = self._broken(condition)
                if reason is not None:
                    return Refusal(Check(stage, expr_text(condition)), reason)
        types: dict[Term, ValueType] = {}
        for term in _target_terms(self._rule):
            kind = self._target_type(term, types)
            if isinstance(kind, str):
                return Refusal(Check("target", term_text(term)), kind)
            types[term] = kind
        return self._wrong_type(types)

    def facts(self, condition: Expr) -> str:
        """Return what a condition is computed from."""
        self._values = self._compiled.bind(self._symbols) or []
        return ", ".join(dict.fromkeys(self._facts(condition)))

    def _unbound(self) -> Refusal:
        """Return what the symbols fail for: an operator, a constant, or a repeated variable."""
        values: dict[str, Any] = {}
        pairs = list(zip(source_nodes(self._rule), self._symbols, strict=True))
        for node, (op, attrs) in pairs:
            if op != node.op:
                return Refusal(OPERATORS, f"{op} for {node.op}")
            exprs = dict(node.attrs)
            for attr in get_operator(node.op).attrs:
                constant = exprs.get(attr.name, Literal(attr.default))
                if isinstance(constant, Literal) and attrs[attr.name] != constant.value:
                    value_text = constant_text(attrs[attr.name])
                    return Refusal(OPERATORS, f"{op} with {attr.name}={value_text}")
        for node, (_, attrs) in pairs:
            for key, expr in node.attrs:
                if isinstance(expr, Var) and values.setdefault(expr.name, attrs[key]) != attrs[key]:
                    value_texts = sorted(map(constant_text, (values[expr.name], attrs[key])))
                    return Refusal(Check("attribute", f"?{expr.name}"), " and ".join(value_texts))
        raise ValueError(f"{self._rule.name}: these are its operators and constants")

    def _broken(self, condition: Expr) -> str | None:
        """Return what a condition was computed from where it does not hold, None where it holds."""
        try:
            holds = self._value(condition) is True
        except Inapplicable:
            return self._undefined(condition)
        facts = ", ".join(dict.fromkeys(self._facts(condition))) or "it never holds"
        return None if holds else facts

    def _facts(self, expr: Expr) -> Iterator[str]:
        """Yield the values that a condition was computed from, each beside its text."""
        if isinstance(expr, Var):
            yield self._fact(expr)
        if not isinstance(expr, Call):
            return
        for arg in expr.args:
            if get_function(expr.function).kind(0) != "bool":
                if not isinstance(arg, Literal):
                    yield self._fact(arg)
            elif expr.function != "and" or not self._holds(arg):
                yield from self._facts(arg)

    def _fact(self, expr: Expr) -> str:
        if isinstance(expr, Var) and expr.name in self._tensors:
            return f"?{expr.name} is {type_text(self._tensors[expr.name])}"
        try:
            return f"{expr_text(expr)} = {constant_text(self._value(expr))}"
        except Inapplicable:
            return self._undefined(expr)

    def _holds(self, condition: Expr) -> bool:
        try:
            return self._value(condition) is True
        except Inapplicable:
            return False

    def _undefined(self, expr: Expr) -> str:
        """Return the innermost call that is not defined here, and what it was given."""
        while isinstance(expr, Call):
            inner = next((arg for arg in expr.args if not self._is_defined(arg)), None)
            if inner is None:
                facts = [self._fact(arg) for arg in expr.args if not isinstance(arg, Literal)]
                return f"{expr_text(expr)} is not defined: {', '.join(dict.fromkeys(facts))}"
            expr = inner
        return expr_text(expr)

    def _is_defined(self, expr: Expr) -> bool:
        try:
            self._value(expr)
        except Inapplicable:
            return False
        return True

    def _value(self, expr: Expr) -> Any:
        return self._compiled.expression(expr)(self._types, self._values)

    def _target_type(self, term: Apply, types: dict[Term, ValueType]) -> ValueType | str:
        """Return the type of a target's node, or why its operands do not fit."""
        operator = get_operator(term.op)
        operands = tuple(
            self._tensors[child.name] if isinstance(child, Var) else types[child]
            for child in term.children
        )
        attrs = {}
        for key, expr in term.attrs:
            try:
                attrs[key] = self._value(expr)
            except Inapplicable:
                return self._undefined(expr)
        try:
            operator.check_arity(len(operands))
            canonical = operator.canonical(operands, attrs)
            kind = operator.infer(operands, canonical)
        except ShapeError as error:
            return str(error)
        computed = not all(isinstance(expr, Literal) for _, expr in term.attrs)
        if computed and not holds_constant(tuple(canonical.items()), kind):
            return f"{type_text(kind)} has no number {constant_text(canonical['value'])}"
        return kind

    def _wrong_type(self, types: dict[Term, ValueType]) -> Refusal:
        """Return which target is of another type than its source; all of them could be built."""
        rule = self._rule
        for source, target, root_type in zip(rule.sources, rule.targets, self._roots, strict=True):
            kind = self._tensors[target.name] if isinstance(target, Var) else types[target]
            if kind != root_type:
                return Refusal(
                    Check("type", term_text(source)),
                    f"{type_text(root_type)} would become {type_text(kind)}",
                )
        raise ValueError(f"{rule.name} applies here: there is no refusal to find")


def _is_about_known(condition: Expr) -> bool:
    """Whether a condition asks whether a value is known before inference."""
    return isinstance(condition, Call) and condition.function == KNOWN


def _repeated_attributes(rule: Rule) -> list[str]:
    names = [
        value.name
        for node in source_nodes(rule)
        for _, value in node.attrs
        if isinstance(value, Var)
    ]
    return [name for name in attr_vars(rule) if names.count(name) > 1]


def _target_terms(rule: Rule) -> list[Apply]:
    """Return the distinct nodes of the targets, operands first: the order of building."""
    terms: dict[Term, None] = {}

    def visit(term: Term) -> None:
        if isinstance(term, Apply) and term not in terms:
            for child in term.children:
                visit(child)
            terms[term] = None

    for target in rule.targets:
        visit(target)
    return [term for term in terms if isinstance(term, Apply)]
