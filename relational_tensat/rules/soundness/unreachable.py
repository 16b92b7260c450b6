"""Proofs that a decision of a rule cannot go some way where the rule applies.

The questions of conditions and decisions are told to z3: numbers, truth, and whether values are equal. All
else is a value that may be anything. So what it finds to be impossible is impossible.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from relational_tensat.rules.functions import get_function
from relational_tensat.rules.model import Call, Expr, Literal, Rule, Var
from relational_tensat.rules.soundness.decisions import EQUAL, Decisions, Goal
from relational_tensat.rules.soundness.solver import is_refuted
from relational_tensat.tensor.types import FLOAT_DTYPES

#: What z3 may spend on one proof, in its own unit.
_EFFORT = 1_000_000
#: Functions whose values have a lower bound.
_AT_LEAST = {"dim": 1, "size": 1, "rank": 0, "len": 0, "groups": 1, "last": 0, "broadcast-dim": 1}


def is_unreachable(rule: Rule, decisions: Decisions, goal: Goal) -> bool:
    """Whether z3 proves that an outcome does not occur where a rule applies."""
    import z3

    meaning = _Meaning()
    try:
        terms = [meaning.truth(condition) for condition in rule.conditions]
        for met in (*decisions.decisions[goal.place].guards, goal):
            decision = decisions.decisions[met.place]
            if decision.hidden:
                terms.append(meaning.choice(decision.expr, decision.hidden))
            else:
                truth = meaning.truth(decision.expr)
                terms.append(truth if met.outcome else z3.Not(truth))
    except _UnknownError:
        return False
    return is_refuted([*terms, *meaning.known], _EFFORT)


class _UnknownError(Exception):
    """Nothing is known of an expression that could be told to z3."""


class _Meaning:
    """The meaning of expressions to z3.

    Attributes:
        known: facts about the values that may be anything.
    """

    def __init__(self) -> None:
        self.known: list[Any] = []
        self._words: dict[str, int] = {}
        self._atoms: dict[tuple[Expr, str], Any] = {}

    def truth(self, expr: Expr) -> Any:
        import z3

        if isinstance(expr, Literal):
            return z3.BoolVal(bool(expr.value))
        if isinstance(expr, Call):
            match expr.function, expr.args:
                case "and", args:
                    return z3.And(*map(self.truth, args))
                case "or", args:
                    return z3.Or(*map(self.truth, args))
                case "not", (arg,):
                    return z3.Not(self.truth(arg))
                case "if", (condition, yes, no):
                    return z3.If(self.truth(condition), self.truth(yes), self.truth(no))
                case "=", (a, b):
                    return self._equal(a, b)
                case "!=", (a, b):
                    return z3.Not(self._equal(a, b))
                case "<", (a, b):
                    return self.number(a) < self.number(b)
                case "<=", (a, b):
                    return self.number(a) <= self.number(b)
                case "is-float", (a,):
                    dtype = self._value(Call("dtype", (a,)))
                    return z3.Or(*(dtype == self._word(name) for name in sorted(FLOAT_DTYPES)))
        return self._atom(expr, "bool")

    def number(self, expr: Expr) -> Any:
        """Return a whole number, or a real one."""
        import z3

        if isinstance(expr, Literal):
            value = expr.value
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise _UnknownError
            if isinstance(value, int):
                return z3.IntVal(value)
            if value != value or abs(value) == float("inf"):
                raise _UnknownError
            return z3.RealVal(Fraction(value))
        if isinstance(expr, Call):
            match expr.function, expr.args:
                case "+", args:
                    return z3.Sum(*map(self.number, args))
                case "-", (a, b):
                    return self.number(a) - self.number(b)
                case "*", args:
                    return z3.Product(*map(self.number, args))
                case "last", (a,):
                    return self.number(Call("rank", (a,))) - 1
                case "if", (condition, yes, no):
                    return z3.If(self.truth(condition), self.number(yes), self.number(no))
                case "min" | "max", (a, b):
                    first, second = self.number(a), self.number(b)
                    chosen = first < second if expr.function == "min" else first > second
                    return z3.If(chosen, first, second)
            if expr.function in _AT_LEAST or _returns(expr) == "int":
                return self._atom(expr, "int")
        # an attribute's value, or a function's that may be one or the other: reals are both
        return self._atom(expr, "real")

    def choice(self, expr: Expr, hidden: str) -> Any:
        """Return when a function makes a hidden choice that has a name."""
        import z3

        if not isinstance(expr, Call) or len(expr.args) != 2:
            raise _UnknownError
        a, b = expr.args
        match hidden:
            case hidden_ if hidden_ == EQUAL:
                return self.number(a) == self.number(b)
            case "a first number that is smaller" | "a second number that is larger":
                return self.number(a) < self.number(b)
            case "a second number that is smaller" | "a first number that is larger":
                return self.number(b) < self.number(a)
            case "a list that goes on":
                length, count = self.number(Call("len", (a,))), self.number(b)
                return z3.And(length > count, length > -count)
        if expr.function in ("//", "mod"):
            dividend, divisor = self.number(a), self.number(b)
            return z3.Or(dividend < 0, divisor < 0, dividend >= divisor)
        raise _UnknownError

    def _equal(self, a: Expr, b: Expr) -> Any:
        import z3

        if isinstance(a, Literal) and isinstance(b, Literal):
            return z3.BoolVal(a.value == b.value)
        if a == b:
            return z3.BoolVal(True)
        for one, other in ((a, b), (b, a)):
            if isinstance(one, Literal):
                if isinstance(one.value, str):
                    return self._value(other) == self._word(one.value)
                if isinstance(one.value, int | float) and not isinstance(one.value, bool):
                    return self.number(other) == self.number(one)
                return self._atom(Call("=", (other, one)), "bool")
        if all(isinstance(side, Var) or _is_number(side) for side in (a, b)):
            return self.number(a) == self.number(b)
        if all(isinstance(side, Call) and side.function == "dtype" for side in (a, b)):
            return self._value(a) == self._value(b)
        first, second = sorted((a, b), key=repr)
        return self._atom(Call("=", (first, second)), "bool")

    def _value(self, expr: Expr) -> Any:
        """Return a value of which only is known which words it is equal to, as a whole number."""
        return self._atom(expr, "word")

    def _word(self, word: str) -> int:
        return self._words.setdefault(word, len(self._words))

    def _atom(self, expr: Expr, kind: str) -> Any:
        import z3

        key = (expr, kind)
        if key not in self._atoms:
            name = f"{kind} {len(self._atoms)}"
            make = {"bool": z3.Bool, "real": z3.Real}.get(kind, z3.Int)
            atom = self._atoms[key] = make(name)
            if isinstance(expr, Call) and expr.function in _AT_LEAST and kind == "int":
                self.known.append(atom >= _AT_LEAST[expr.function])
        return self._atoms[key]


def _returns(expr: Call) -> str:
    return str(get_function(expr.function).call.__annotations__.get("return"))


def _is_number(expr: Expr) -> bool:
    return isinstance(expr, Call) and _returns(expr) in ("int", "float")


def proved(rule: Rule, decisions: Decisions, goals: Sequence[Goal]) -> list[Goal]:
    """Return those of some goals that z3 proves to be unreachable."""
    return [goal for goal in goals if is_unreachable(rule, decisions, goal)]
