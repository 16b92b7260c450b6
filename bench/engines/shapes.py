"""The rules of shapes as egglog expressions: an integer stands for a shape.

``[2, 3, 5]`` is 2·B² + 3·B + 5: dimensions are the digits of a number, the last one the lowest, so that
most rules are arithmetic, and a rank is a range. Operators are those that TASO's rules build.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeGuard

from relational_tensat.base.errors import InputError
from relational_tensat.rules.model import Expr, Literal
from relational_tensat.tensor.types import AttrValue

#: No dimension is larger; four of them fit into 64 bits.
BASE = 1 << 15

#: Of operands' shapes, the attributes and the rank that the rule is about: facts, and the result's shape.
ShapeRule = Callable[[Sequence[str], Mapping[str, Expr], int], tuple[list[str], str]]


def pack(shape: Sequence[int]) -> int:
    """Return the number of a shape.

    Raises:
        InputError: it has more dimensions, or larger ones, than fit.
    """
    if not fits(shape):
        raise InputError(f"shape {list(shape)}, expected up to 4 dimensions from 1 to {BASE - 1}")
    number = 0
    for size in shape:
        number = number * BASE + size
    return number


def fits(values: Sequence[object]) -> TypeGuard[Sequence[int]]:
    """Whether these values are a shape that has a number."""
    return len(values) <= 4 and all(isinstance(size, int) and 0 < size < BASE for size in values)


def dim(shape: str, index: int, rank: int) -> str:
    """Return the expression of a dimension, from 0 on, of a shape of a rank."""
    place = rank - 1 - index
    front = shape if place == 0 else f"(/ {shape} {BASE**place})"
    return front if index == 0 else f"(% {front} {BASE})"


def batch(shape: str) -> str:
    """Return the expression of all dimensions but the last two."""
    return f"(/ {shape} {BASE**2})"


def has_rank(shape: str, rank: int) -> list[str]:
    """Return the facts that a shape has a rank."""
    return [f"(>= {shape} {BASE ** (rank - 1)})", f"(< {shape} {BASE**rank})"]


def result_shape(
    op: str, operands: Sequence[str], attrs: Mapping[str, Expr], rank: int
) -> tuple[list[str], str]:
    """Return what must hold of the operands of an operator, and the shape of its result.

    Raises:
        InputError: no rule here for that operator.
    """
    if op not in _RULES:
        raise InputError(f"operator {op!r}, expected one of {', '.join(sorted(_RULES))}")
    return _RULES[op](operands, attrs, rank)


def _same(operands: Sequence[str], attrs: Mapping[str, Expr], rank: int) -> tuple[list[str], str]:
    first, *others = operands
    return [f"(= {first} {other})" for other in others if other != first], first


def _matmul(operands: Sequence[str], attrs: Mapping[str, Expr], rank: int) -> tuple[list[str], str]:
    a, b = operands
    facts = [f"(= (% {a} {BASE}) (% (/ {b} {BASE}) {BASE}))", f"(= {batch(a)} {batch(b)})"]
    return facts, f"(+ (* (/ {a} {BASE}) {BASE}) (% {b} {BASE}))"


def _concat(operands: Sequence[str], attrs: Mapping[str, Expr], rank: int) -> tuple[list[str], str]:
    a, b = operands
    axis = _number(attrs["axis"])
    unit, above = BASE ** (rank - 1 - axis), BASE ** (rank - axis)
    facts = [f"(= (% {a} {unit}) (% {b} {unit}))"] if unit > 1 else []
    if axis > 0:
        facts.append(f"(= (/ {a} {above}) (/ {b} {above}))")
    return facts, f"(+ {a} (* {dim(b, axis, rank)} {unit}))"


def _conv(operands: Sequence[str], attrs: Mapping[str, Expr], rank: int) -> tuple[list[str], str]:
    x, w = operands
    if attrs["pad"] != Literal("same"):
        raise InputError(f"conv with padding {attrs['pad']}, expected same")
    channels, group, filters = dim(x, 1, 4), dim(w, 1, 4), dim(w, 0, 4)
    facts = [f"(= 0 (% {channels} {group}))", f"(= 0 (% {filters} (/ {channels} {group})))"]
    assert isinstance(attrs["stride"], Literal) and isinstance(attrs["stride"].value, tuple)
    result = f"(+ (* {dim(x, 0, 4)} {BASE}) {filters})"
    for index, stride in enumerate(attrs["stride"].value, start=2):
        size = dim(x, index, 4)
        size = size if stride == 1 else f"(/ (+ {size} {_integer(stride) - 1}) {stride})"
        result = f"(+ (* {result} {BASE}) {size})"
    return facts, result


def _enlarge(
    operands: Sequence[str], attrs: Mapping[str, Expr], rank: int
) -> tuple[list[str], str]:
    w, reference = operands
    facts = [f"(<= {dim(w, i, 4)} {dim(reference, i, 4)})" for i in (2, 3)]
    return facts, f"(+ (* {batch(w)} {BASE**2}) (% {reference} {BASE**2}))"


def _merge(operands: Sequence[str], attrs: Mapping[str, Expr], rank: int) -> tuple[list[str], str]:
    """Of ``groups`` groups, whose number the rule's own expression has: see ``translation``."""
    (w,) = operands
    return [], f"(+ {w} (* {dim(w, 1, 4)} {(_number(attrs['count']) - 1) * BASE**2}))"


def _number(expr: Expr) -> int:
    assert isinstance(expr, Literal)
    return _integer(expr.value)


def _integer(value: AttrValue) -> int:
    assert isinstance(value, int)
    return value


#: By operator. The parts of a split have none: each is a target's root, whose source has the same shape.
_RULES: dict[str, ShapeRule] = {
    "matmul": _matmul, "add": _same, "mul": _same, "relu": _same, "concat": _concat, "conv": _conv,
    "enlarge": _enlarge, "merge": _merge,
}  # fmt: skip
