"""What ``rules verify`` reports: a line a rule, then the counterexamples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from relational_tensat.cli.console import table
from relational_tensat.rules.soundness.parallel import Verified


def print_verdicts(found: Sequence[Verified], seconds: float, console: Console) -> None:
    """Print the table, what is only known from float64, and what failed.

    Args:
        seconds: that all of it took.
    """
    rows = table(
        "rule", "verdict", "evidence", "instances", "seconds", numbers=("instances", "seconds")
    )
    for each in found:
        verdict = each.verdict
        rows.add_row(
            verdict.rule,
            verdict.status,
            verdict.evidence,
            str(verdict.trials),
            f"{each.seconds:.2f}",
        )
    console.print(rows)
    _print_counts(found, seconds, console)
    for each in found:
        if each.verdict.status != "sound":
            _print_failure(each, console)


def verdicts_json(found: Sequence[Verified], seconds: float) -> dict[str, Any]:
    """Return all of it as one object; see ``print_verdicts``."""
    return {
        "seconds": round(seconds, 3),
        "sound": sum(each.verdict.status == "sound" for each in found),
        "failed": [each.verdict.rule for each in found if each.verdict.status != "sound"],
        "only_float64": only_float64(found),
        "rules": [_entry(each) for each in found],
    }


def only_float64(found: Sequence[Verified]) -> list[str]:
    """Return the names of the sound rules that hold for real numbers only, up to rounding."""
    return [
        each.verdict.rule
        for each in found
        if each.verdict.status == "sound" and each.verdict.evidence == "float64"
    ]


def _entry(each: Verified) -> dict[str, Any]:
    verdict = each.verdict
    example = verdict.counterexample
    return {
        "rule": verdict.rule,
        "verdict": verdict.status,
        "evidence": verdict.evidence,
        "instances": verdict.trials,
        "seconds": round(each.seconds, 3),
        "reason": verdict.reason,
        "counterexample": None if example is None else example.to_json(),
    }


def _print_counts(found: Sequence[Verified], seconds: float, console: Console) -> None:
    counts = {"sound": 0, "unsound": 0, "untested": 0}
    for each in found:
        counts[each.verdict.status] += 1
    named = [f"{count} {status}" for status, count in counts.items() if count]
    rules = "1 rule" if len(found) == 1 else f"{len(found)} rules"
    console.print(f"{rules} in {seconds:.1f} s: {', '.join(named) or 'nothing to verify'}")
    approximate = only_float64(found)
    if approximate:
        console.print(
            f"{len(approximate)} of them about real numbers, so compared in float64:"
            f" {', '.join(approximate)}"
        )


def _print_failure(each: Verified, console: Console) -> None:
    verdict = each.verdict
    console.print(f"\n{verdict.rule} is {verdict.status}: {verdict.reason}")
    if verdict.counterexample is not None:
        console.print(verdict.counterexample.text(), end="")
