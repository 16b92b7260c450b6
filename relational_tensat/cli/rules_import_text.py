"""What ``rules import`` reports: a line a rule, then the totals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from relational_tensat.cli.console import table
from relational_tensat.rules.taso import Judgement, counts, finding
from relational_tensat.rules.text import expr_text, rule_text


def print_imports(judgements: Sequence[Judgement], seconds: float, console: Console) -> None:
    """Print the table of verdicts and the totals.

    Args:
        seconds: that the judging took.
    """
    rows = table("rule", "verdict", "law", "condition or counterexample")
    for judgement in judgements:
        rows.add_row(judgement.rule.name, judgement.status, judgement.rule.law, finding(judgement))
    console.print(rows)
    totals = ", ".join(f"{count} {status}" for status, count in counts(judgements).items() if count)
    amount = "1 rule" if len(judgements) == 1 else f"{len(judgements)} rules"
    console.print(f"{amount}: {totals}; judged in {seconds:.1f} s")


def imports_json(
    judgements: Sequence[Judgement], source: Path, output: Path | None, seconds: float
) -> dict[str, Any]:
    """Return all of it as one object."""
    return {
        "file": str(source),
        "output": None if output is None else str(output),
        "seconds": round(seconds, 3),
        "totals": counts(judgements),
        "rules": [_rule_json(judgement) for judgement in judgements],
    }


def _rule_json(judgement: Judgement) -> dict[str, Any]:
    rule, verdict = judgement.rule, judgement.verdict
    counterexample = verdict.counterexample
    return {
        "name": rule.name,
        "law": rule.law,
        "verdict": judgement.status,
        "condition": [expr_text(part) for part in judgement.condition],
        "evidence": verdict.evidence,
        "trials": verdict.trials,
        "reason": verdict.reason,
        "counterexample": None if counterexample is None else counterexample.to_json(),
        "text": rule_text(rule),
    }
