"""A schedule as a value: steps, one after the other, repeated, or until they add nothing.

A schedule is written as text: ``saturate(cheap); repeat 2 (multi; saturate(cheap))``.

``NAME`` is a step of a ruleset, ``NAME + NAME`` of several at once, ``saturate(…)`` repeats until nothing
is added, ``repeat N (…)`` repeats N times, ``;`` separates what is done one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import NoReturn, TypeAlias

from relational_tensat.base.errors import UsageError, nearest
from relational_tensat.base.records import record

#: Yields what takes part in a step, is sent whether that step added something; returns whether any did.
Steps: TypeAlias = Generator["tuple[str, ...]", bool, bool]


@record
class RunRules:
    """One step of the rules of some rulesets.

    Attributes:
        rulesets: names of rulesets or rules; all of them take part.
    """

    rulesets: tuple[str, ...]

    def __str__(self) -> str:
        return " + ".join(self.rulesets)

    def steps(self) -> Steps:
        """Yield the step."""
        return (yield self.rulesets)


@record
class Sequence:
    """Schedules, one after the other."""

    parts: tuple[Plan, ...]

    def __str__(self) -> str:
        return "; ".join(map(str, self.parts))

    def steps(self) -> Steps:
        """Yield the steps of each."""
        has_added = False
        for part in self.parts:
            has_added |= yield from part.steps()
        return has_added


@record
class Saturate:
    """A schedule again and again, until a time in which it adds nothing."""

    body: Plan

    def __str__(self) -> str:
        return f"saturate({self.body})"

    def steps(self) -> Steps:
        """Yield its steps until they add nothing."""
        has_added = False
        while (yield from self.body.steps()):
            has_added = True
        return has_added


@record
class RepeatRules:
    """A schedule so many times; fewer if it has nothing left to add."""

    times: int
    body: Plan

    def __str__(self) -> str:
        return f"repeat {self.times} ({self.body})"

    def steps(self) -> Steps:
        """Yield its steps so many times."""
        has_added = False
        for _ in range(self.times):
            if not (yield from self.body.steps()):
                break
            has_added = True
        return has_added


Plan: TypeAlias = RunRules | Sequence | Saturate | RepeatRules


def rulesets_of(plan: Plan) -> tuple[str, ...]:
    """Return the names of rulesets and rules in a schedule, each once, in their order."""
    if isinstance(plan, RunRules):
        return plan.rulesets
    parts = plan.parts if isinstance(plan, Sequence) else (plan.body,)
    return tuple(dict.fromkeys(name for part in parts for name in rulesets_of(part)))


class Schedule:
    """A schedule that is carried out, step by step."""

    def __init__(self, plan: Plan, rules_of: Callable[[str], frozenset[int]]) -> None:
        """Begin a schedule.

        Args:
            rules_of: the ids of a ruleset's rules.
        """
        self._steps = plan.steps()
        self._rules_of = rules_of
        self._advance(None)

    @property
    def rules(self) -> frozenset[int] | None:
        """Rules that take part in the next step; None after the last."""
        return self._rules

    def note(self, has_added: bool) -> None:
        """Note whether the step added something; ``rules`` are then those of the step after it."""
        self._advance(has_added)

    def _advance(self, has_added: bool | None) -> None:
        """Go to the next step that has rules: without, nothing can be added."""
        try:
            names = next(self._steps) if has_added is None else self._steps.send(has_added)
            while not (rules := frozenset[int]().union(*map(self._rules_of, names))):
                names = self._steps.send(False)
        except StopIteration:
            self._rules: frozenset[int] | None = None
        else:
            self._rules = rules


_WORDS = ("saturate", "repeat")
_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]*(?:\[[^\]\s]*\])?"
_TOKEN = re.compile(rf"\s*({_NAME}|[();+])")


def parse_schedule(text: str) -> Plan:
    """Return the schedule that a text describes.

    Raises:
        UsageError: it is malformed; names the place, and what was expected.
    """
    return _Parser(text).read()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, int]] = []
        end = 0
        while remainder := text[end:].strip():
            match = _TOKEN.match(text, end)
            if match is None:
                self._end = text.index(remainder, end)
                self._fail(
                    f"{remainder[0]!r}, expected a ruleset, saturate(…) or repeat N (…)", self._end
                )
            self._tokens.append((match[1], match.start(1)))
            end = match.end()
        self._end = len(text)

    def read(self) -> Plan:
        """Return the whole text's schedule."""
        plan = self._sequence()
        if self._tokens:
            self._fail(f"{self._tokens[0][0]!r}, expected ; or the end", self._place())
        return plan

    def _sequence(self) -> Plan:
        parts = [self._part()]
        while self._next() == ";":
            self._take()
            if self._next() in ("", ")"):  # after the last one, too
                break
            parts.append(self._part())
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _part(self) -> Plan:
        token, place = self._next(), self._place()
        if token == "(":
            return self._body()
        if token in ("", ")", ";", "+"):
            token_text = repr(token) if token else "the end"
            self._fail(f"{token_text}, expected a ruleset, saturate(…) or repeat N (…)", place)
        self._take()
        if token == "saturate":
            return Saturate(self._body())
        if token == "repeat":
            return self._repeat()
        if self._next() == "(":
            self._fail(
                f"{token!r} before (, expected saturate or repeat{nearest(token, _WORDS)}", place
            )
        return self._run(token)

    def _repeat(self) -> Plan:
        count, place = self._next(), self._place()
        if not count.isdecimal() or int(count) < 1:
            self._fail(f"{count or 'the end'!r} after repeat, expected how many times", place)
        self._take()
        return RepeatRules(int(count), self._body())

    def _run(self, first: str) -> Plan:
        names = [first]
        while self._next() == "+":
            self._take()
            name, place = self._next(), self._place()
            if not re.fullmatch(_NAME, name):
                self._fail(f"{name or 'the end'!r} after +, expected a ruleset", place)
            self._take()
            names.append(name)
        return RunRules(tuple(names))

    def _body(self) -> Plan:
        """Read ``( SCHEDULE )``."""
        if self._next() != "(":
            self._fail(f"{self._next() or 'the end'!r}, expected (", self._place())
        place = self._place()
        self._take()
        plan = self._sequence()
        if self._next() != ")":
            self._fail("( without )", place)
        self._take()
        return plan

    def _next(self) -> str:
        """Return the token that comes next; empty at the end."""
        return self._tokens[0][0] if self._tokens else ""

    def _place(self) -> int:
        return self._tokens[0][1] if self._tokens else self._end

    def _take(self) -> None:
        del self._tokens[0]

    def _fail(self, reason: str, place: int) -> NoReturn:
        text = " ".join(self._text.split("\n"))
        raise UsageError(f"schedule {text!r}, character {place + 1}: {reason}")
