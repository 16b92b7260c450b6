"""Pairs of terms as they are written: names, laws, and the rule that a pair becomes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import numpy as np

from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.model import (
    Apply,
    Call,
    Expr,
    Literal,
    Rule,
    Term,
    Var,
    nodes_of,
    rule_text,
    term_text,
    variables_of,
)

#: Variables of rules, in the order of their occurrence.
_NAMES = "abcdefgh"
_INFIX = {"add": "+", "sub": "-", "mul": "×", "div": "÷", "matmul": "·"}
#: An operator of one operand twice, which gives the same whatever it is.
_SELF = ("sub", "div", "equal", "less", "less_or_equal")


def with_names(term: Term, names: Mapping[str, str]) -> Term:
    """Return a term with other variables."""
    return replaced(term, lambda node: node, names)


def replaced(term: Term, change: Callable[[Apply], Apply], names: Mapping[str, str]) -> Term:
    """Return a term with other names, and each operator changed."""
    if isinstance(term, Var):
        return Var(names.get(term.name, term.name))
    children = tuple(replaced(child, change, names) for child in term.children)
    return change(Apply(term.op, children, term.attrs))


def with_literals(term: Term, change: Callable[[str, Literal], Expr]) -> Term:
    """Return a term with each literal changed, given its attribute's name."""

    def changed(node: Apply) -> Apply:
        attrs = tuple(
            (name, change(name, value) if isinstance(value, Literal) else value)
            for name, value in node.attrs
        )
        return Apply(node.op, node.children, attrs)

    return replaced(term, changed, {})


def first_names(*terms: Term) -> dict[str, str]:
    """Return names for the variables of terms, in the order of their occurrence."""
    return dict(zip(variables_of(*terms), _NAMES, strict=False))


def renamed(source: Term, target: Term) -> tuple[Term, Term]:
    """Return both sides with variables named by first occurrence."""
    names = first_names(source, target)
    return with_names(source, names), with_names(target, names)


def is_permutative(source: Term, target: Term) -> bool:
    """Whether one side is the other with its variables exchanged: such rules fill e-graphs."""
    names = variables_of(source)
    text = term_text(target)
    if sorted(names) != sorted(variables_of(target)):
        return False
    return any(
        term_text(with_names(source, dict(zip(names, order, strict=True)))) == text
        for order in itertools.permutations(names)
    )


def is_degenerate(term: Term) -> bool:
    """Whether a term computes what is known: of one operand twice, or of numbers alone."""
    for node in nodes_of(term):
        if node.op in _SELF and len(set(node.children)) == 1:
            return True
        numbers = [isinstance(child, Apply) and child.op == "fill" for child in node.children]
        if numbers and all(numbers):
            return True
    return False


def rule_of(name: str, source: Term, target: Term, of: str = "") -> Rule:
    """Return the rule of a pair: variables renamed, what is reshaped of any shape, numbers of any type.

    A number of the source that float32 does not have is any that is close to it.

    Args:
        of: the variable whose type numbers have, and whose shape contains theirs; else the first one.
    """
    names = first_names(source, target)
    source, target = renamed(source, target)
    wide = Var(names[of] if of else variables_of(source)[0])
    count = itertools.count()
    conditions: list[Expr] = []
    close: dict[float, Var] = {}
    shapes: dict[Expr, Var] = {}

    def close_to(value: Expr) -> Expr:
        number = value.value if isinstance(value, Literal) else None
        if not isinstance(number, float) or float(np.float32(number)) == number:
            return value
        if number not in close:
            close[number] = Var(f"c{len(close)}")
            conditions.append(Call("close", (close[number], value)))
        return close[number]

    def found(node: Apply) -> Apply:
        attrs = tuple((key, close_to(value)) for key, value in node.attrs)
        if node.op == "reshape":
            ((key, shape_there),) = attrs
            attrs = ((key, shapes.setdefault(shape_there, Var(f"h{len(shapes)}"))),)
        if node.op != "fill":
            return Apply(node.op, node.children, attrs)
        index = next(count)
        shape, of_wide = Var(f"s{index}"), Call("shape", (wide,))
        conditions.append(Call("=", (Call("broadcast", (of_wide, shape)), of_wide)))
        typed = ("dtype", Var(f"d{index}")), ("shape", shape)
        return Apply("fill", (), (("value", dict(attrs)["value"]), *typed))

    def put(node: Apply) -> Apply:
        if node.op == "reshape":
            ((key, shape_there),) = node.attrs
            return Apply(node.op, node.children, ((key, shapes.get(shape_there, shape_there)),))
        if node.op != "fill":
            return node
        typed = ("dtype", Call("dtype", (wide,))), ("shape", Literal(()))
        return Apply("fill", (), (("value", dict(node.attrs)["value"]), *typed))

    left, right = replaced(source, found, {}), replaced(target, put, {})
    assert isinstance(left, Apply)
    law = f"{law_text(source)} = {law_text(target)}"
    return read_rule_text(rule_text(Rule(name, law, (left,), (right,), tuple(conditions))))


def read_rule_text(text: str) -> Rule:
    """Return the one rule of a text."""
    (rule,) = parse_rules(text, "found.rules")
    return rule


def law_text(term: Term) -> str:
    """Return a term as a formula.

    >>> law_text(Apply("sub", (Var("a"), Apply("relu", (Var("a"),)))))
    'a - relu(a)'
    """
    if isinstance(term, Var):
        return term.name
    attrs = dict(term.attrs)
    if term.op == "fill":
        return _value(attrs["value"])
    if term.op == "smul" and "value" in attrs:
        return f"{_value(attrs['value'])}·{_closed(term.children[0])}"
    if term.op in _INFIX and len(term.children) == 2:
        return f" {_INFIX[term.op]} ".join(map(_closed, term.children))
    more = [f"{name} {_value(value)}" for name, value in term.attrs]
    return f"{term.op}({', '.join([*map(law_text, term.children), *more])})"


def _closed(term: Term) -> str:
    text = law_text(term)
    return f"({text})" if isinstance(term, Apply) and term.op in (*_INFIX, "smul") else text


def _value(value: Expr) -> str:
    match value:
        case Literal(number):
            return f"{number:g}" if isinstance(number, float) else str(number)
        case Var(name):
            return name
    if value.args[:1] == (Literal(-1),) and value.function == "*":
        return f"-{_value(value.args[1])}"
    return f"({f' {value.function} '.join(map(_value, value.args))})"
