"""What came of the search for a rule's pattern, in a line."""

from __future__ import annotations

from relational_tensat.explain.why_not.funnel import Trace, WhyNot
from relational_tensat.explain.why_not.source import Step

#: What a status means, for so many matches.
_MEANING = {
    "chosen": "the result computes what the rule built",
    "not chosen": "applied, but extraction chose something else",
    "not needed": "applied, but the result does without",
    "filtered": "applied, but dropped by the cycle filter",
    "cyclic": "not applied: it would close a cycle",
    "not united": "not applied",
}


def conclusion(answer: WhyNot, trace: Trace) -> str:
    """Return what came of a search, in one line."""
    text = _conclusion(trace)
    matched = sum(work.matches for work in answer.work)
    if trace.outcomes or not matched or answer.tensor:
        return text
    suffix = "what it matched in the run is not there any more: united with it, or a cycle"
    return f"{text} ({suffix})"


def _conclusion(trace: Trace) -> str:
    if trace.outcomes:
        parts = [f"{count:,} {_MEANING[status]}" for status, count in trace.counts.items()]
        return f"{len(trace.outcomes):,} passed: {'; '.join(parts)}"
    last = trace.steps[-1] if trace.steps[-1].stage != "find" else _failed(trace)
    instead = ", ".join(last.instead)
    match last.stage:
        case "find":
            return f"no match: no place where {last.requirement}; there: {instead or 'nothing'}"
        case "pair":
            return f"no match: no pair where {last.requirement}"
        case "attribute":
            return f"the last were rejected: {last.requirement} stands for two values: {instead}"
        case "target":
            return (
                f"the last were rejected by shapes, at {last.requirement} in the target: {instead}"
            )
        case "type":
            return f"the last were rejected: the result would be another type: {instead}"
        case stage:
            return f"the last were rejected by ({stage} {last.requirement}): {instead}"


def _failed(trace: Trace) -> Step:
    """Return the first step that left nothing."""
    return next(step for step in trace.steps if not step.left)
