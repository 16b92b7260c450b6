"""Why rules were not used: those that matched, and brought no step to the result."""

from __future__ import annotations

from collections.abc import Sequence

from relational_tensat.explain.why_not.conclusion import conclusion
from relational_tensat.explain.why_not.funnel import Funnels, WhyNot
from relational_tensat.view.data.search_data import Narrowing, Place, RuleWork, Unused

#: Rules that a page explains, those that matched most; the served view explains each that is asked for.
_MOST_RULES = 25
_MOST_PLACES = 8


def unused(funnels: Funnels, rules: Sequence[RuleWork]) -> tuple[Unused, ...]:
    """Return why rules that matched have no step in the film; ``rules`` with most matches first."""
    names = [rule.name for rule in rules if rule.matches and not rule.steps]
    return tuple(why_unused(funnels, name) for name in names[:_MOST_RULES])


def why_unused(funnels: Funnels, name: str) -> Unused:
    """Return why one rule did not change the result.

    Raises:
        UsageError: there is no such rule; names the nearest.
    """
    answers = funnels.why_not(name)
    (answer, *_) = [item for item in answers if item.rule.name == name] or answers
    return _unused(answer)


def _unused(answer: WhyNot) -> Unused:
    (trace,) = answer.traces
    return Unused(
        rule=answer.rule.name,
        conclusion=conclusion(answer, trace),
        steps=tuple(Narrowing(step.requirement, step.left, step.instead) for step in trace.steps),
        places=tuple(
            Place(o.places, o.status, o.made_by, o.iteration, o.cost_us, o.detail)
            for o in trace.outcomes[:_MOST_PLACES]
        ),
    )
