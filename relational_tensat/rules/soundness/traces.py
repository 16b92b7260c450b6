"""Numbers that remember how they were computed, and what was asked of them on the way.

A traced number is a number, and a term of z3. Where code compares it, the comparison and its outcome are
noted as a constraint: all constraints together say for which other numbers the same code takes the same
way. So every function of rules, and every operator's rule for shapes, can be asked for numbers that make it
go another way, as they are written.

Only one trace is recorded at a time. Without z3 there are no traced numbers, and nothing is recorded.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from relational_tensat.rules.functions import get_function
from relational_tensat.rules.instance import Evaluate
from relational_tensat.rules.model import Call, Var

if TYPE_CHECKING:
    import z3

#: The constraints of the trace that is recorded: terms, and whether they held.
_constraints: list[tuple[Any, bool]] | None = None
#: The most questions that are recorded: a run that asks more is not understood any better with them.
_MOST_CONSTRAINTS = 4_000


@contextmanager
def recording() -> Iterator[list[tuple[Any, bool]]]:
    """Record what is asked of traced numbers."""
    global _constraints
    _constraints = []
    try:
        yield _constraints
    finally:
        _constraints = None


def position() -> int:
    """Return how many constraints were recorded so far."""
    return 0 if _constraints is None else len(_constraints)


def _note(term: Any, outcome: bool) -> bool:
    if _constraints is not None and len(_constraints) < _MOST_CONSTRAINTS:
        _constraints.append((term, outcome))
    return outcome


class _Traced:
    """The common part of traced whole numbers and traced floats; ``term`` is of z3."""

    term: z3.ArithRef

    def __eq__(self, other: object) -> bool:
        return self._compared(other, operator.eq)

    def __ne__(self, other: object) -> bool:
        return not self._compared(other, operator.eq)

    def __lt__(self, other: Any) -> bool:
        return self._compared(other, operator.lt)

    def __le__(self, other: Any) -> bool:
        return self._compared(other, operator.le)

    def __gt__(self, other: Any) -> bool:
        return self._compared(other, operator.gt)

    def __ge__(self, other: Any) -> bool:
        return self._compared(other, operator.ge)

    def __bool__(self) -> bool:
        return _note(self.term != 0, _plain(self) != 0)

    def _compared(self, other: object, compare: Callable[[Any, Any], Any]) -> bool:
        plain = _plain(self)
        if not isinstance(other, int | float) or isinstance(other, bool):
            return bool(compare(plain, other)) if isinstance(other, bool) else False
        outcome = bool(compare(plain, _plain(other)))
        term = _term(other)
        return outcome if term is None else _note(compare(self.term, term), outcome)

    def __add__(self, other: Any) -> Any:
        return _computed(operator.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return _computed(operator.add, other, self)

    def __sub__(self, other: Any) -> Any:
        return _computed(operator.sub, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _computed(operator.sub, other, self)

    def __mul__(self, other: Any) -> Any:
        return _computed(operator.mul, self, other)

    def __rmul__(self, other: Any) -> Any:
        return _computed(operator.mul, other, self)

    def __truediv__(self, other: Any) -> Any:
        return _computed(operator.truediv, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _computed(operator.truediv, other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _computed(operator.floordiv, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _computed(operator.floordiv, other, self)

    def __mod__(self, other: Any) -> Any:
        return _computed(operator.mod, self, other)

    def __rmod__(self, other: Any) -> Any:
        return _computed(operator.mod, other, self)

    def __neg__(self) -> Any:
        return made(-_plain(self), -self.term)

    def __abs__(self) -> Any:
        return self if self >= 0 else -self


class TracedInt(_Traced, int):
    """A whole number that remembers how it was computed."""

    __hash__ = int.__hash__


class TracedFloat(_Traced, float):
    """A float that remembers how it was computed, as a real number."""

    __hash__ = float.__hash__

    def __floor__(self) -> Any:
        import z3

        return made(int(_plain(self) // 1), z3.ToInt(self.term))


class TracedList(tuple[Any, ...]):
    """An attribute's list, whose length has a term, too."""

    term: z3.ArithRef


def made(value: float, term: Any) -> Any:
    """Return a traced number."""
    number: Any = TracedInt(value) if isinstance(value, int) else TracedFloat(value)
    number.term = term
    return number


def _plain(value: Any) -> Any:
    """Return a number without its term."""
    if isinstance(value, TracedInt):
        return int.__int__(value)
    return float.__float__(value) if isinstance(value, TracedFloat) else value


def _term(value: Any) -> Any:
    """Return the term of a number; None of what no term is known for."""
    if isinstance(value, _Traced):
        return value.term
    if isinstance(value, int):
        return int(value)
    import z3

    return z3.RealVal(Fraction(value)) if value == value and abs(value) != float("inf") else None


def _computed(compute: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    if not isinstance(a, int | float) or not isinstance(b, int | float):
        return compute(_plain(a), _plain(b))  # a list that is repeated: its length is what it is
    value = compute(_plain(a), _plain(b))
    left, right = _term(a), _term(b)
    if left is None or right is None:
        return value
    if compute in (operator.floordiv, operator.mod):
        if not isinstance(a, int) or not isinstance(b, int):
            return value
        return made(value, _rounded_down(left, right, _plain(b), compute is operator.mod))
    if compute is operator.truediv:
        import z3

        left = z3.ToReal(left) if isinstance(a, int) and isinstance(a, _Traced) else left
        right = z3.ToReal(right) if isinstance(b, int) and isinstance(b, _Traced) else right
        if isinstance(left, int):
            left = z3.RealVal(left)
    return made(value, compute(left, right))


def _rounded_down(a: Any, b: Any, divisor: int, remainder: bool) -> Any:
    """Return Python's quotient or remainder; z3's are these where the divisor is above 0."""
    import z3

    a, b = (z3.IntVal(x) if isinstance(x, int) else x for x in (a, b))
    quotient = a / b if divisor > 0 else (-a) / (-b)
    return a - b * quotient if remainder else quotient


# --- what functions of rules ask that is more than one comparison ---


def _same(a: Any, b: Any) -> bool:
    """Whether two values are equal: of lists one constraint, not one after the other."""
    if _constraints is None or not (isinstance(a, tuple) and isinstance(b, tuple)):
        return bool(a == b)
    import z3

    plain = tuple(map(_plain, a)) == tuple(map(_plain, b))
    lengths = length_of(a), length_of(b)
    if len(a) != len(b):
        bool(lengths[0] == lengths[1])
        return plain
    pairs = [(_term(x), _term(y)) for x, y in zip(a, b, strict=True) if _is_number(x, y)]
    terms = [x == y for x, y in pairs if not isinstance(x == y, bool)]
    return _note(z3.And(*terms), plain) if terms else plain


def _close(a: Any, b: Any) -> bool:
    """Whether two numbers are close; equal ones are looked for."""
    outcome: bool = get_function("close").call(_plain(a), _plain(b))
    if _constraints is None:
        return outcome
    left, right = _term(a), _term(b)
    if left is None or right is None or isinstance(left == right, bool):
        return outcome
    return _note(left == right, outcome)


def _is_number(*values: object) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _whole(value: Any) -> Any:
    """Return a number without fraction as a whole number."""
    whole = get_function("whole").call(_plain(value))
    if _constraints is None or not isinstance(value, TracedFloat):
        return whole
    import z3

    return made(whole, z3.ToInt(value.term))


#: Stand-ins for functions of rules that give the same.
REPLACED: Mapping[str, Callable[..., Any]] = {
    "=": _same,
    "!=": lambda a, b: not _same(a, b),
    "close": _close,
    "whole": _whole,
}


#: Functions of rules that give a rank or a length.
LENGTHS = ("rank", "last", "len")


def length_of(values: Any) -> Any:
    """Return the length of a list, traced where it has a term."""
    return made(len(values), values.term) if isinstance(values, TracedList) else len(values)


def length_name(function: str, name: str) -> str:
    """Return how z3 calls the rank of a tensor, or the length of an attribute's list."""
    return f"{'length' if function == 'len' else 'rank'} {name}"


def length(expr: Call, evaluate: Evaluate) -> Evaluate:
    """Return one of ``LENGTHS`` of a variable, traced while a trace is recorded."""
    (arg,) = expr.args
    assert isinstance(arg, Var)
    name, shift = length_name(expr.function, arg.name), int(expr.function == "last")

    def traced_length(types: Any, values: Any) -> Any:
        value = evaluate(types, values)
        if _constraints is None:
            return value
        import z3

        return made(value, z3.Int(name) - shift)

    return traced_length
