"""``explain --why-not`` for people: a funnel of counts, and one line that says what came of it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from relational_tensat.cli.console import table
from relational_tensat.explain.why_not.funnel import Trace, WhyNot, conclusion
from relational_tensat.explain.why_not.outcome import MatchOutcome
from relational_tensat.explain.why_not.source import JoinStep
from relational_tensat.rules.text import term_text

_PLACES_SHOWN = 10


def print_why_not(answer: WhyNot, console: Console) -> None:
    """Print how far a rule got."""
    rule = answer.rule
    console.print(f"{rule.name}: {rule.law}")
    console.print(_work(answer))
    for trace in answer.traces:
        console.print()
        if answer.tensor:
            subject = f"source {trace.at} of the rule" if rule.is_multi else "the rule"
            console.print(f"at {answer.tensor}, as what {subject} replaces:")
        _print_steps(answer, trace, console)
        console.print(conclusion(answer, trace))
        _print_outcomes(answer, trace, console)


def _work(answer: WhyNot) -> str:
    if not answer.in_run:
        return "the run did not have this rule; it is looked for in what the run left"
    parts = [
        f"iteration {work.iteration}: {work.matches:,} matched, {work.e_nodes:,} e-nodes made"
        for work in answer.work
    ]
    return f"in the run: {'; '.join(parts) or 'it never matched'}"


def _print_steps(answer: WhyNot, trace: Trace, console: Console) -> None:
    rows = table("left", "step", "rejected", numbers=("left",))
    for title, steps in _sections(answer, trace):
        rows.add_row("", title)
        for step in steps:
            away = ", ".join(step.instead) if step.left else ""  # the last ones: see the conclusion
            rows.add_row(f"{step.left:,}", f"  {step.requirement}", away)
    console.print(rows)
    if trace.is_cut:
        console.print(f"(only a part of the {trace.matches:,} pairs is judged, as in the run)")


def _sections(answer: WhyNot, trace: Trace) -> Iterator[tuple[str, list[JoinStep]]]:
    for number, source in enumerate(answer.rule.sources, start=1):
        steps = [step for step in trace.steps if step.stage == "find" and step.source == number]
        yield term_text(source), steps
    pairs = [step for step in trace.steps if step.stage == "pair"]
    if pairs:
        yield "pairs of both" if len(answer.rule.sources) == 2 else "matches of all", pairs
    for stage, title in _STAGES:
        steps = [step for step in trace.steps if step.stage == stage]
        if steps:
            yield title, steps


_STAGES = (
    ("attribute", "attributes that must agree"),
    ("where", "where (the law needs it)"),
    ("worth", "worth (it may pay)"),
    ("target", "the target's operands fit"),
    ("type", "the target has its source's type"),
)


def _print_outcomes(answer: WhyNot, trace: Trace, console: Console) -> None:
    if not trace.outcomes:
        return
    rows = table("place", "made by", "iteration", "cost, µs", "what became of it",
                 numbers=("iteration", "cost, µs"))  # fmt: skip
    for outcome in trace.outcomes[:_PLACES_SHOWN]:
        cost = "" if outcome.cost_us is None else f"{outcome.cost_us:,.2f}"
        when = "" if outcome.iteration < 0 else str(outcome.iteration)
        rows.add_row(", ".join(outcome.places), outcome.made_by, when, cost, _became(outcome))
    console.print(rows)
    if len(trace.outcomes) > _PLACES_SHOWN:
        console.print(f"(showing {_PLACES_SHOWN} of {len(trace.outcomes):,})")
    console.print(f"the extracted graph costs {answer.result_us:,.2f} µs")


def _became(outcome: MatchOutcome) -> str:
    return f"{outcome.status}: {outcome.detail}" if outcome.detail else outcome.status
