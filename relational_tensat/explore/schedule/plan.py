"""A schedule as a value: steps, one after the other, repeated, or until they add nothing."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeAlias

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
