"""Rules as certificates state them: read, matched with terms and judged, by code of its own.

The search compiles rules to SQL, and builds what they say. Here a rule is only a question about two terms:
does one have the shape of its source, the other that of its target? Shared with the search is what words
mean: operators, and the functions that conditions are made of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from relational_tensat.base.errors import InputError, RelationalTensatError
from relational_tensat.certificate.term_table import TermTable
from relational_tensat.rules.functions import Inapplicable, get_function
from relational_tensat.rules.model import Apply, Call, Expr, Literal, Rule, Term, Var
from relational_tensat.tensor.floats import is_extreme, representable
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import AttrValue, TensorType, tensors_of

_TOKEN = re.compile(r'"[^"\n]*"|[()\[\]]|;[^\n]*|[^\s()\[\]";]+')
_INTEGER = re.compile(r"[+-]?\d+")
_REAL = re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?|[+-]?inf")
_CLAUSES = frozenset(
    ("law", "ruleset", "symmetric", "unsound", "widened", "from", "to", "where", "worth")
)
#: Rules nest no deeper.
_DEEPEST = 100

#: A word, or what stands in brackets; the first item of the latter is its bracket.
_Form: TypeAlias = "str | list[_Form]"


def read_rule(text: str, name: str) -> Rule:
    """Return the rule of a text; its conditions are those that the law needs.

    Raises:
        InputError: the text is no rule in its plain form: each name put in, for one direction.
    """
    try:
        if f"(rule {name}\n" not in text:
            raise ValueError("not a rule of that name")
        (form,) = _forms(text.replace(f"(rule {name}\n", "(rule it\n", 1))  # [ is no part of words
        clauses = {clause[1]: clause[2:] for clause in form[3:]}
        if form[:3] != ["(", "rule", "it"] or not clauses.keys() <= _CLAUSES:
            raise ValueError("not a rule in its plain form")
        sources = tuple(_term(each, is_source=True) for each in clauses["from"])
        targets = tuple(_term(each, is_source=False) for each in clauses["to"])
        applied = tuple(each for each in sources if isinstance(each, Apply))
        if not len(applied) == len(sources) == len(targets):
            raise ValueError("sources and targets do not fit")
        conditions = tuple(map(_expr, clauses.get("where", ())))
        (law,) = clauses["law"]
        return Rule(
            name, str(law)[1:-1], applied, targets, conditions,
            unsound="unsound" in clauses, widened="widened" in clauses,
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, IndexError, RelationalTensatError) as error:
        raise InputError(f"the rule {name!r} cannot be read: {error}") from None


def _forms(text: str) -> list[Any]:
    open_forms: list[list[Any]] = [[]]
    for token in _TOKEN.findall(text):
        if token[0] == ";":
            continue
        if token[0] in "([":
            open_forms.append([token])
            if len(open_forms) > _DEEPEST:
                raise ValueError(f"more than {_DEEPEST} brackets are open")
        elif token[0] in ")]":
            closed = open_forms.pop()
            if not open_forms or closed[0] + token not in ("()", "[]"):
                raise ValueError(f"{token} closes nothing")
            open_forms[-1].append(closed)
        else:
            open_forms[-1].append(token)
    if len(open_forms) > 1:
        raise ValueError("a bracket is never closed")
    return open_forms[0]


def _term(form: Any, *, is_source: bool) -> Term:
    if isinstance(form, str):
        return Var(_variable(form))
    bracket, op, *items = form
    operator = get_operator(op)
    children: list[Term] = []
    attrs: dict[str, Expr] = {}
    rest = iter(items)
    for item in rest:
        if isinstance(item, str) and item[0] == ":":
            value = _expr(next(rest))
            if is_source and isinstance(value, Call):
                raise ValueError(f"{op} {item} is computed in a source")
            attrs[item[1:]] = value
        else:
            children.append(_term(item, is_source=is_source))
    if bracket != "(" or not attrs.keys() <= operator.declared.keys():
        raise ValueError(f"{op} has no such attributes")
    operator.check_arity(len(children))
    ordered = [(name, attrs[name]) for name in operator.declared if name in attrs]
    return Apply(op, tuple(children), tuple(ordered))


def _expr(form: Any) -> Expr:
    if isinstance(form, str):
        return Var(_variable(form)) if form[0] == "?" else Literal(_constant(form))
    if form[0] == "[":
        return Literal(tuple(_constant(item) for item in form[1:]))
    function = get_function(form[1])
    if not function.takes(len(form) - 2):
        raise ValueError(f"{function.signature} has {len(form) - 2} arguments")
    return Call(function.name, tuple(map(_expr, form[2:])))


def _variable(word: str) -> str:
    if word[0] != "?":
        raise ValueError(f"{word} where a variable is expected")
    return word[1:]


def _constant(form: Any) -> AttrValue:
    if isinstance(form, list):
        if form[0] != "[":
            raise ValueError("a constant is computed")
        return tuple(map(_constant, form[1:]))
    if form[0] == '"':
        return str(form[1:-1])
    if _INTEGER.fullmatch(form):
        return int(form)
    if _REAL.fullmatch(form):
        return float(form)
    return {"true": True, "false": False}.get(form, str(form))


def operators_of(rule: Rule) -> set[str]:
    """Return the operators of both sides of a rule."""
    pending, found = [*rule.sources, *rule.targets], set[str]()
    while pending:
        term = pending.pop()
        if isinstance(term, Apply):
            found.add(term.op)
            pending += term.children
    return found


@dataclass(slots=True)
class Binding:
    """The values of a rule's variables.

    Attributes:
        terms: of tensors' variables.
        values: of attributes' variables.
    """

    terms: dict[str, int] = field(default_factory=dict)
    values: dict[str, AttrValue] = field(default_factory=dict)


def check_instance(
    rule: Rule, sources: Sequence[int], targets: Sequence[int], table: TermTable
) -> None:
    """Check that a rule says that terms are equal: each source and its target.

    Args:
        sources, targets: a term for each of the rule's.

    Raises:
        InputError: the rule says something else.
    """
    if not len(sources) == len(targets) == len(rule.sources):
        raise InputError(f"has {len(sources)} terms, expected {len(rule.sources)}")
    found = Binding()
    scales: list[AttrValue] = []
    for source, term in zip(rule.sources, sources, strict=True):
        _match(source, term, table, found, scales)
    types = [kind for term in found.terms.values() for kind in tensors_of(table.type(term))]
    if any(is_extreme(scale, kind.dtype) for scale in scales for kind in types):
        raise InputError("multiplies by a number that is too large or too small for the law")
    try:
        if not all(_value(condition, found, table) is True for condition in rule.conditions):
            raise InputError("a condition of the rule does not hold")
        for target, term in zip(rule.targets, targets, strict=True):
            _fit(target, term, table, found)
    except Inapplicable:
        raise InputError("the rule is not defined for such operands") from None
    for one, other in zip(sources, targets, strict=True):
        if table.type(one) != table.type(other):
            raise InputError("the types of both sides differ")


def _match(
    pattern: Term, term: int, table: TermTable, found: Binding, scales: list[AttrValue]
) -> None:
    """Bind the variables of a source; a variable that occurs twice stands for one term or value."""
    if isinstance(pattern, Var):
        if found.terms.setdefault(pattern.name, term) != term:
            raise InputError(f"?{pattern.name} stands for two terms")
        return
    op, attrs, children = table[term]
    if op != pattern.op or len(children) != len(pattern.children):
        raise InputError(f"a term of {op} stands where the rule has {pattern.op}")
    exprs, values = dict(pattern.attrs), dict(attrs)
    for attr in get_operator(op).attrs:
        expr = exprs.get(attr.name, Literal(attr.default))
        if isinstance(expr, Var):
            if found.values.setdefault(expr.name, values[attr.name]) != values[attr.name]:
                raise InputError(f"?{expr.name} stands for two values")
        elif not isinstance(expr, Literal) or values[attr.name] != expr.value:
            raise InputError(f"{op} has another {attr.name}")
    if op == "smul":
        scales.append(values["value"])
    for child_pattern, child in zip(pattern.children, children, strict=True):
        _match(child_pattern, child, table, found, scales)


def _fit(pattern: Term, term: int, table: TermTable, found: Binding) -> None:
    """Check that a term is what a target says."""
    if isinstance(pattern, Var):
        if found.terms.get(pattern.name) != term:
            raise InputError(f"?{pattern.name} stands for another term")
        return
    op, attrs, children = table[term]
    if op != pattern.op or len(children) != len(pattern.children):
        raise InputError(f"a term of {op} stands where the rule builds {pattern.op}")
    operands = tuple(table.type(child) for child in children)
    given = {name: _value(expr, found, table) for name, expr in pattern.attrs}
    built = get_operator(op).canonical(operands, given)
    if tuple(built.items()) != attrs:
        raise InputError(f"{op} has other attributes than the rule builds")
    kind, value = table.type(term), built.get("value")
    if (
        given
        and isinstance(value, int | float)
        and isinstance(kind, TensorType)
        and not representable(float(value), kind.dtype)
    ):
        raise InputError(f"{op} has a number that its type does not have")
    for child_pattern, child in zip(pattern.children, children, strict=True):
        _fit(child_pattern, child, table, found)


def _value(expr: Expr, found: Binding, table: TermTable) -> Any:
    if isinstance(expr, Literal):
        return expr.value
    if isinstance(expr, Var):
        term = found.terms.get(expr.name)
        if term is None:
            return found.values[expr.name]
        return table.type(term)
    function = get_function(expr.function)
    if function.lazy:
        return function.call(*[_later(arg, found, table) for arg in expr.args])
    args = [_value(arg, found, table) for arg in expr.args]
    if not all(function.check(place)(arg) for place, arg in enumerate(args)):
        raise Inapplicable
    return function.call(*args)


def _later(expr: Expr, found: Binding, table: TermTable) -> Callable[[], Any]:
    return lambda: _value(expr, found, table)
