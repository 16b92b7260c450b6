"""What ``rules verify`` reports: a line a rule, then the counterexamples."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

from relational_tensat.cli.console import table
from relational_tensat.rules.soundness.gate import Verified
from relational_tensat.tensor.types import FLOAT_DTYPES


def print_verdicts(results: Sequence[Verified], seconds: float, console: Console) -> None:
    """Print the table, what is only known from float64, and what failed.

    Args:
        seconds: that all of it took.
    """
    rows = table(
        "rule",
        "verdict",
        "evidence",
        "instances",
        "ways",
        "seconds",
        numbers=("instances", "ways", "seconds"),
    )
    for result in results:
        verdict = result.verdict
        rows.add_row(
            verdict.rule,
            verdict.status,
            verdict.evidence,
            str(verdict.trials),
            str(verdict.shown.outcomes),
            f"{result.seconds:.2f}",
        )
    console.print(rows)
    _print_counts(results, seconds, console)
    for result in results:
        if result.verdict.status != "sound":
            _print_failure(result, console)


def verdicts_json(results: Sequence[Verified], seconds: float) -> dict[str, Any]:
    """Return all of it as one object; see ``print_verdicts``."""
    return {
        "seconds": round(seconds, 3),
        "sound": sum(result.verdict.status == "sound" for result in results),
        "failed": [result.verdict.rule for result in results if result.verdict.status != "sound"],
        "only_float64": only_float64(results),
        "rules": [_entry(result) for result in results],
    }


def only_float64(results: Sequence[Verified]) -> list[str]:
    """Return the names of the sound rules that hold for real numbers only, up to rounding."""
    return [
        result.verdict.rule
        for result in results
        if result.verdict.status == "sound" and result.verdict.evidence == "float64"
    ]


def _entry(result: Verified) -> dict[str, Any]:
    verdict = result.verdict
    example = verdict.counterexample
    return {
        "rule": verdict.rule,
        "verdict": verdict.status,
        "evidence": verdict.evidence,
        "instances": verdict.trials,
        "seconds": round(result.seconds, 3),
        "types": dict(verdict.types),
        "coverage": asdict(verdict.shown),
        "reason": verdict.reason,
        "counterexample": None if example is None else example.to_json(),
    }


def _print_counts(results: Sequence[Verified], seconds: float, console: Console) -> None:
    counts = {"sound": 0, "unsound": 0, "untested": 0}
    for result in results:
        counts[result.verdict.status] += 1
    totals = [f"{count} {status}" for status, count in counts.items() if count]
    rules = "1 rule" if len(results) == 1 else f"{len(results)} rules"
    console.print(f"{rules} in {seconds:.1f} s: {', '.join(totals) or 'nothing to verify'}")
    _print_ways(results, console)
    approximate = only_float64(results)
    if approximate:
        console.print(
            f"{len(approximate)} of them about real numbers, so compared in float64:"
            f" {', '.join(approximate)}"
        )
    console.print(
        f"in machine arithmetic: {len(proved(results))} proved on integers of every width,"
        f" {len(moderate(results))} on moderate floats only"
    )


def _print_ways(results: Sequence[Verified], console: Console) -> None:
    """Say which ways of the rules' decisions instances went."""
    shown = [result.verdict.shown for result in results]
    taken = sum(one.outcomes for one in shown)
    impossible = sum(len(one.impossible) for one in shown)
    line = f"ways that the rules decide between: {taken} taken by an instance"
    if impossible:
        line += f", {impossible} impossible, as z3 proves"
    missed = sum(len(one.missed) for one in shown)
    if missed:
        line += f", {missed} neither"
    if taken or missed:
        console.print(line)
    if importlib.util.find_spec("z3") is None:
        console.print(
            "z3 is not installed (pip install relational-tensat[proofs]): what is rarely met is not"
            " looked for, nothing is proved, and fewer rules pass"
        )


def proved(results: Sequence[Verified]) -> list[str]:
    """Return the names of the rules that are proved in every integer type that they are met in."""
    return [
        result.verdict.rule
        for result in results
        if any(dtype not in FLOAT_DTYPES for dtype in result.verdict.types)
        and all(
            evidence == "proved"
            for dtype, evidence in result.verdict.types.items()
            if dtype not in FLOAT_DTYPES
        )
    ]


def moderate(results: Sequence[Verified]) -> list[str]:
    """Return the names of the rules that hold for moderate floats only, in some element type."""
    return [
        result.verdict.rule for result in results if "moderate" in result.verdict.types.values()
    ]


def _print_failure(result: Verified, console: Console) -> None:
    verdict = result.verdict
    console.print(f"\n{verdict.rule} is {verdict.status}: {verdict.reason}")
    if verdict.counterexample is not None:
        console.print(verdict.counterexample.text(), end="")
