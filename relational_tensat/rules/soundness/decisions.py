"""The decisions of a rule, and their ways so far.

A decision is an ``if``, an ``and``, an ``or``, a ``not``, a comparison or any other function that is true
or false, wherever it stands in conditions and targets. Functions that choose hide decisions: which of two
numbers is the smaller, whether a list has elements beyond those that are taken.

Only outcomes that a rule can apply with count: a condition holds, so of ``(where (or A B))`` A may hold or
not, and B holds wherever it is asked.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from relational_tensat.rules.functions import Inapplicable, get_function
from relational_tensat.rules.instance import Evaluate, PreparedRule, Types
from relational_tensat.rules.model import Apply, Call, Expr, Rule, Term, Var, expr_text
from relational_tensat.rules.soundness import traces

#: Cases to look for beside the outcomes of a comparison of numbers, in words.
EQUAL = "equal numbers"
#: Both outcomes of what is true or false.
_BOTH = frozenset({True, False})


class Goal(NamedTuple):
    """An outcome of a decision: the decision's place in the rule, and what came out of it."""

    place: int
    outcome: bool


class Event(NamedTuple):
    """That a decision went some way, and which constraints of a trace made it go so."""

    goal: Goal
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision in a rule.

    Attributes:
        expr: what decides; of a hidden one, the function that chooses.
        hidden: its choices, in words; empty for decisions between true and false.
        guards: the goals that must have been met for it to be asked at all.
    """

    expr: Expr
    hidden: str
    guards: tuple[Goal, ...]


class Decisions:
    """The decisions of one rule.

    Attributes:
        decisions: by place.
        goals: the outcomes with which the rule could apply.
    """

    def __init__(self, rule: Rule, compiled: PreparedRule) -> None:
        self._compiled = compiled
        self._events: list[Event] = []
        self._guards: tuple[Goal, ...] = ()
        self.decisions: list[Decision] = []
        self.goals: list[Goal] = []
        self._conditions = [
            self._compile(condition, frozenset({True})) for condition in rule.conditions
        ]
        attributes = [attr for target in _once(rule.targets) for attr in target]
        self._values = [self._compile(value, frozenset()) for value in attributes]

    def outcomes(self, types: Types, values: list[Any]) -> tuple[list[Event], bool]:
        """Return what was decided, in order, and whether the conditions hold and all has a value."""
        self._events = []
        try:
            for condition in self._conditions:
                if condition(types, values) is not True:
                    return self._events, False
            for value in self._values:
                value(types, values)
        except Inapplicable:
            return self._events, False
        return self._events, True

    def text(self, goal: Goal) -> str:
        """Return a goal in words."""
        decision = self.decisions[goal.place]
        text = expr_text(decision.expr)
        if decision.hidden:
            return f"{decision.hidden} in {text}"
        return f"{text} is {str(goal.outcome).lower()}"

    def is_soft(self, goal: Goal) -> bool:
        """Whether a goal is no outcome of its own: equal numbers, at which one becomes another."""
        return self.decisions[goal.place].hidden == EQUAL

    def _compile(self, expr: Expr, wanted: frozenset[bool]) -> Evaluate:
        """Return what evaluates an expression and notes its decisions.

        Args:
            wanted: of what is true or false, the outcomes with which the rule could apply; none where
                it is only a value.
        """
        if not isinstance(expr, Call):
            base = self._compiled.expression(expr)
            if not wanted or not isinstance(expr, Var):
                return base
            return self._noted(expr, wanted, base)
        function = get_function(expr.function)
        if expr.function in traces.LENGTHS and isinstance(expr.args[0], Var):
            return traces.length(expr, self._compiled.expression(expr))
        is_truth = function.call.__annotations__.get("return") == "bool"
        if is_truth and not wanted:
            wanted = _BOTH
        match expr.function:
            case "if":
                return self._branch(expr, wanted)
            case "and" | "or":
                base = self._chain(expr, wanted)
            case "not":
                inner = self._compile(expr.args[0], frozenset(not way for way in wanted))
                base = _call(function.call, [inner], [function.check(0)])
            case _:
                args = [self._compile(arg, frozenset()) for arg in expr.args]
                call = traces.REPLACED.get(expr.function, function.call)
                if any(isinstance(arg, Var | Call) for arg in expr.args):
                    call = self._choosing(expr, call, wanted)
                base = _call(call, args, [function.check(i) for i in range(len(args))])
        return self._noted(expr, wanted, base) if is_truth else base

    def _branch(self, expr: Call, wanted: frozenset[bool]) -> Evaluate:
        """An ``if``: its condition decides, and each of its branches is asked where it went that way."""
        condition = self._compile(expr.args[0], _BOTH)
        if not _is_noted(expr.args[0]):
            condition = self._noted(expr.args[0], _BOTH, condition)
        place = len(self.decisions) - 1
        before = self._guards
        branches = []
        for way, arg in zip((True, False), expr.args[1:], strict=True):
            self._guards = (*before, Goal(place, way))
            branches.append(self._compile(arg, wanted))
        self._guards = before
        yes, no = branches
        return lambda types, values: (yes if condition(types, values) else no)(types, values)

    def _chain(self, expr: Call, wanted: frozenset[bool]) -> Evaluate:
        """An ``and`` or ``or``: all but its last part may go either way, unless it has to go one way."""
        ends = expr.function == "or"  # the outcome of a part that ends it
        before = self._guards
        parts = []
        for index, arg in enumerate(expr.args):
            is_last = index == len(expr.args) - 1
            ways = wanted if is_last or wanted == frozenset({not ends}) else _BOTH
            parts.append(self._compile(arg, ways))
            if not _is_noted(arg):
                parts[-1] = self._noted(arg, ways, parts[-1])
            self._guards = (*self._guards, Goal(len(self.decisions) - 1, not ends))
        self._guards = before

        def evaluate(types: Types, values: list[Any]) -> bool:
            return (any if ends else all)(part(types, values) for part in parts)

        return evaluate

    def _noted(self, expr: Expr, wanted: frozenset[bool], base: Evaluate) -> Evaluate:
        place = self._add(expr, "", wanted)

        def evaluate(types: Types, values: list[Any]) -> Any:
            start = traces.position()
            value = base(types, values)
            self._events.append(Event(Goal(place, bool(value)), start, traces.position()))
            return value

        return evaluate

    def _choosing(
        self, expr: Call, call: Callable[..., Any], wanted: frozenset[bool]
    ) -> Callable[..., Any]:
        """Return a function that notes its choices, too; itself if it chooses nothing."""
        if expr.function in _EXTREMA:
            ways: Sequence[tuple[str, Callable[..., object]]] = _chosen_numbers(expr)
        elif expr.function in _AT_EQUAL and _AT_EQUAL[expr.function] in wanted:
            ways = ((EQUAL, operator.eq),)
        else:
            ways = _HIDDEN.get(expr.function, ())
        if not ways:
            return call
        places = [self._add(expr, words, frozenset({True})) for words, _ in ways]

        def chosen(*given: Any) -> Any:
            for place, (_, met) in zip(places, ways, strict=True):
                start = traces.position()
                outcome = bool(met(*given))
                self._events.append(Event(Goal(place, outcome), start, traces.position()))
            return call(*given)

        return chosen

    def _add(self, expr: Expr, hidden: str, wanted: frozenset[bool]) -> int:
        place = len(self.decisions)
        self.decisions.append(Decision(expr, hidden, self._guards))
        self.goals += [Goal(place, way) for way in sorted(wanted, reverse=True)]
        return place


#: Functions that choose one of some numbers: the ground of the choice, and a word for it.
_EXTREMA = {"min": (operator.lt, "smaller"), "max": (operator.gt, "larger")}
_ORDINALS = ("first", "second", "third", "fourth")


def _chosen_numbers(expr: Call) -> list[tuple[str, Callable[..., object]]]:
    """Return, per number that an extremum may be, when it is: when it alone is."""
    compare, word = _EXTREMA[expr.function]

    def is_chosen(index: int, *numbers: Any) -> bool:
        others = (*numbers[:index], *numbers[index + 1 :])
        return all(compare(numbers[index], other) for other in others)

    ordinals = [*_ORDINALS, *("further" for _ in expr.args[len(_ORDINALS) :])]
    return [
        (f"a {ordinal} number that is {word}", partial(is_chosen, index))
        for index, ordinal in enumerate(ordinals[: len(expr.args)])
    ]


#: Per function that chooses between values, its choices in words, and the test for each.
_HIDDEN: dict[str, Sequence[tuple[str, Callable[..., object]]]] = {
    "//": (("a quotient that is not 0", lambda a, b: a >= b > 0 or a < 0 or b < 0),),
    "mod": (("a number that is not its own remainder", lambda a, b: a >= b > 0 or a < 0 or b < 0),),
    "without": (
        (
            "a place that the list has",
            lambda values, places: any(0 <= at < traces.length_of(values) for at in places),
        ),
    ),
    "without-zeros": (("a number that is 0", lambda values: any(v == 0 for v in values)),),
    "take": (("a list that goes on", lambda values, n: traces.length_of(values) > abs(n)),),
    "drop": (("a list that goes on", lambda values, n: traces.length_of(values) > abs(n)),),
}
#: The answers of comparisons to equal numbers.
_AT_EQUAL = {"<": False, "<=": True}


def _is_noted(expr: Expr) -> bool:
    """Whether an expression notes its own outcome as the last decision in it."""
    if not isinstance(expr, Call) or expr.function == "if":
        return isinstance(expr, Var)
    return get_function(expr.function).call.__annotations__.get("return") == "bool"


def _call(
    call: Callable[..., Any], args: Sequence[Evaluate], checks: Sequence[Callable[[object], bool]]
) -> Evaluate:
    def evaluate(types: Types, values: list[Any]) -> Any:
        given = []
        for arg, check in zip(args, checks, strict=True):
            value = arg(types, values)
            if not check(value):
                raise Inapplicable
            given.append(value)
        return call(*given)

    return evaluate


def _once(targets: Sequence[Term]) -> Iterator[list[Expr]]:
    """Yield the attributes of each application in the targets, of equal ones once."""
    seen: set[Term] = set()

    def visit(term: Term) -> Iterator[list[Expr]]:
        if isinstance(term, Apply) and term not in seen:
            seen.add(term)
            for child in term.children:
                yield from visit(child)
            yield [value for _, value in term.attrs]

    for target in targets:
        yield from visit(target)
