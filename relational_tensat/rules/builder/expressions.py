"""Expressions of rules in Python: tensors and values, each a form of the rule language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn, Self, TypeAlias, overload

from relational_tensat.base.errors import UsageError
from relational_tensat.rules.expansion import OPTIONAL
from relational_tensat.rules.syntax import Atom, Form, Syntax
from relational_tensat.tensor.types import AttrValue

#: The types that may stand for a value.
ValueLike: TypeAlias = "Value | Choice | AttrValue"


class _WrittenForm:
    __slots__ = ("syntax",)

    def __init__(self, syntax: Syntax) -> None:
        self.syntax = syntax

    @classmethod
    def variable(cls, name: str) -> Self:
        """Return the variable ``?name``."""
        return cls(Atom(f"?{name}", 0))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({syntax_text(self.syntax)})"


class Tensor(_WrittenForm):
    """An operand: a variable, or an operator's result."""

    __slots__ = ()


class Value(_WrittenForm):
    """An attribute's value or a condition: a variable, or what a function makes of others.

    ``==``, ``<`` and the like make conditions, ``+``, ``//`` and the like values. A condition has no truth
    value in Python: the counterparts of ``and`` and ``or`` are ``fn.and_`` and ``fn.or_``.
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # equality is a condition

    def __bool__(self) -> NoReturn:
        raise UsageError(
            f"{syntax_text(self.syntax)} is a condition of a rule, expected no use of its truth:"
            " write fn.and_, fn.or_, fn.not_, fn.if_"
        )

    def __eq__(self, other: object) -> Value:  # type: ignore[override]  # a condition, not a bool
        return call("=", self, other)

    def __ne__(self, other: object) -> Value:  # type: ignore[override]  # a condition, not a bool
        return call("!=", self, other)

    def __lt__(self, other: ValueLike) -> Value:
        return call("<", self, other)

    def __le__(self, other: ValueLike) -> Value:
        return call("<=", self, other)

    def __gt__(self, other: ValueLike) -> Value:
        return call("<", other, self)

    def __ge__(self, other: ValueLike) -> Value:
        return call("<=", other, self)

    def __add__(self, other: ValueLike) -> Value:
        return call("+", self, other)

    def __radd__(self, other: ValueLike) -> Value:
        return call("+", other, self)

    def __sub__(self, other: ValueLike) -> Value:
        return call("-", self, other)

    def __rsub__(self, other: ValueLike) -> Value:
        return call("-", other, self)

    def __mul__(self, other: ValueLike) -> Value:
        return call("*", self, other)

    def __rmul__(self, other: ValueLike) -> Value:
        return call("*", other, self)

    def __floordiv__(self, other: ValueLike) -> Value:
        return call("//", self, other)

    def __truediv__(self, other: ValueLike) -> Value:
        return call("/", self, other)

    def __rtruediv__(self, other: ValueLike) -> Value:
        return call("/", other, self)


class Choice:
    """A word that ``each`` puts others in for: an operator, called like one, or an attribute's value."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *operands: Tensor, **attributes: ValueLike) -> Tensor:
        """Apply the operator that the word stands for."""
        return apply(f"?{self.name}", operands, attributes)

    def __repr__(self) -> str:
        return f"Choice(?{self.name})"


@overload
def optional(there: Tensor | None = None, *, otherwise: Tensor | None = None) -> Tensor: ...


@overload
def optional(
    there: Value | Choice | int | float | str | None = None,
    *,
    otherwise: Value | Choice | int | float | str | None = None,
) -> Value: ...


def optional(there: object = None, *, otherwise: object = None) -> Tensor | Value:
    """Return what is there with the rule's optional operands, and what instead of it without them.

    Args:
        there: an operand, an attribute's value or a condition; None for nothing.
        otherwise: the same, without the optional operands.

    Raises:
        UsageError: both are None, or one is a tensor and the other a value.
    """
    parts = [part for part in (there, otherwise) if part is not None]
    kinds = {isinstance(part, Tensor) for part in parts}
    if len(kinds) != 1:
        raise UsageError(
            f"optional({there!r}, otherwise={otherwise!r}), expected tensors or values"
        )
    items: list[Syntax] = [Atom(OPTIONAL, 0)]
    items += [] if there is None else [syntax_of(there)]
    items += [] if otherwise is None else [Atom(":else", 0), syntax_of(otherwise)]
    form = Form(items, 0)
    return Tensor(form) if kinds == {True} else Value(form)


def apply(operator: str, operands: tuple[object, ...], attributes: Mapping[str, object]) -> Tensor:
    """Return an operator's result; whether it takes these operands is checked with the rule.

    Raises:
        UsageError: an operand is no tensor, or an attribute's value cannot be one.
    """
    items: list[Syntax] = [Atom(operator, 0)]
    for index, operand in enumerate(operands, 1):
        if not isinstance(operand, Tensor):
            raise UsageError(f"{operator}: operand {index} is {operand!r}, expected a Tensor")
        items.append(operand.syntax)
    for key, value in attributes.items():
        if isinstance(value, Tensor):
            raise UsageError(f"{operator}: {key} is {value!r}, expected a value")
        items += _attribute(Atom(f":{key}", 0), syntax_of(value))
    return Tensor(Form(items, 0))


def call(function: str, *arguments: object) -> Value:
    """Return what a function makes of its arguments; whether it takes them is checked with the rule."""
    return Value(Form([Atom(function, 0), *map(syntax_of, arguments)], 0))


def syntax_of(value: object) -> Syntax:
    """Return an expression or a constant in the rule language.

    Raises:
        UsageError: it is neither.
    """
    if isinstance(value, Tensor | Value):
        return value.syntax
    if isinstance(value, Choice):
        return Atom(f"?{value.name}", 0)
    if isinstance(value, bool):
        return Atom(str(value).lower(), 0)
    if isinstance(value, int | float):
        return Atom(repr(value), 0)
    if isinstance(value, str):
        return Atom(value, 0, quoted=True)
    if isinstance(value, tuple | list):
        return Form([syntax_of(item) for item in value], 0, square=True)
    raise UsageError(f"{value!r}, expected a Tensor, a Value or a constant")


def syntax_text(syntax: Syntax) -> str:
    """Return a form as the rule language writes it."""
    if isinstance(syntax, Atom):
        return f'"{syntax.text}"' if syntax.quoted else syntax.text
    opening, closing = "[]" if syntax.square else "()"
    return f"{opening}{' '.join(map(syntax_text, syntax.items))}{closing}"


def _attribute(key: Atom, value: Syntax) -> list[Syntax]:
    """Return an attribute and its value; of one that is optional, both are."""
    if isinstance(value, Atom) or value.head != OPTIONAL:
        return [key, value]
    items: list[Syntax] = []
    for item in value.items:
        is_word = isinstance(item, Atom) and item.text in (OPTIONAL, ":else")
        items += [item] if is_word else [key, item]
    return [Form(items, 0)]
