"""``explain`` for people and for programs: the chain of steps, or why a rule did not fire.

``--why-not`` prints a funnel of counts, and one line that says what came of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console

from relational_tensat.cli.console import table
from relational_tensat.explain.explanation import ExplainedStep, Explanation
from relational_tensat.explain.numeric import NumericCheck
from relational_tensat.explain.why_not.funnel import Trace, WhyNot, conclusion
from relational_tensat.explain.why_not.outcome import MatchOutcome
from relational_tensat.explain.why_not.source import JoinStep
from relational_tensat.rules.model import term_text

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


def print_explanation(
    explanation: Explanation, check: NumericCheck | None, console: Console
) -> None:
    """Print one line for each step, and what was checked."""
    before, after = explanation.cost_original_us, explanation.cost_after_us
    count = len(explanation.steps)
    console.print(
        f"{explanation.model}: {before:.2f} → {after:.2f} µs in {count} step{'s' * (count != 1)},"
        " each one application of one rule"
    )
    cost_us = explanation.cost_before_us
    if explanation.shared:
        console.print(
            f"before the first step, equal nodes become one: {_shared(explanation)}"
            f"  cost {before:.2f} → {cost_us:.2f} µs"
        )
    for step in explanation.steps:
        console.print(_line(step, count, cost_us))
        cost_us = step.cost_us
    if explanation.steps and not explanation.is_cheaper:
        console.print(
            "note: this graph is not cheaper than the original, so a run keeps the original"
        )
    if explanation.kept_original:
        console.print(f"note: {explanation.kept_original}")
    console.print(
        "checked: every step is what its rule says, and the last graph is the one that was extracted"
    )
    if check is not None:
        console.print(
            f"checked: {check.tensors} replaced tensor{'s' * (check.tensors != 1)} computed both ways"
            " in float64, and the outputs;"
            f" worst relative error {check.max_relative_error:.2e}, tolerance {check.tolerance:g}"
        )


def explanation_json(explanation: Explanation, check: NumericCheck | None) -> dict[str, Any]:
    """Return the explanation as one object for programs.

    Costs are modelled microseconds: ``cost_original_us`` of the model as it was given,
    ``cost_before_us`` once equal nodes are one (``shared``: their values' names, the one that stays
    first), ``cost_after_us`` of the extracted graph. ``cheaper``: a run prefers that to the original;
    ``kept_original``: why it wrote the original all the same (run whole, it was faster), else null.
    ``operators…``: how many operators run at inference.

    Each of ``steps`` is one application of one rule: ``step`` (from 1), ``rule``, ``law``, ``backward``
    (the law is read from right to left), ``at`` (what is replaced: ``tensor``, and for a tensor that the
    model does not have, ``near``, the nearest of the model's that is computed from it), ``found`` and
    ``built`` (operators before and after), ``cost_us`` and ``operators`` of the graph after the step.

    ``checked`` is null without ``--check``: else ``ok``, ``tensors`` (how many were compared),
    ``max_relative_error``, ``tolerance`` and ``failures`` (one line each).
    """
    return {
        "model": explanation.model,
        "cost_original_us": explanation.cost_original_us,
        "cost_before_us": explanation.cost_before_us,
        "cost_after_us": explanation.cost_after_us,
        "cheaper": explanation.is_cheaper,
        "kept_original": explanation.kept_original or None,
        "operators_before": explanation.operators_before,
        "shared": [list(names) for names in explanation.shared],
        "steps": [
            {
                "step": step.number,
                "rule": step.rule,
                "law": step.law,
                "backward": step.backward,
                "at": [{"tensor": place.tensor, "near": place.near} for place in step.at],
                "before": list(step.before),
                "after": list(step.after),
                "cost_us": step.cost_us,
                "operators": step.operators,
            }
            for step in explanation.steps
        ],
        "checked": None
        if check is None
        else {
            "ok": check.ok,
            "tensors": check.tensors,
            "max_relative_error": check.max_relative_error,
            "tolerance": check.tolerance,
            "failures": list(check.failures),
        },
    }


def _shared(explanation: Explanation) -> str:
    return "; ".join(" = ".join(names) for names in explanation.shared)


def _line(step: ExplainedStep, count: int, cost_us: float) -> str:
    direction = ", read from right to left" if step.backward else ""
    places = " and ".join(
        f"{place.tensor} (for {place.near})" if place.near else place.tensor for place in step.at
    )
    after = ", ".join(step.after) or "an operand"
    return (
        f"step {step.number}/{count}  {step.rule}  ({step.law}{direction})  at {places}:"
        f" {', '.join(step.before) or 'a value'} → {after}"
        f"  cost {cost_us:.2f} → {step.cost_us:.2f} µs"
    )
