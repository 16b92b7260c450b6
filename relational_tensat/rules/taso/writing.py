"""Judged rules as a rule file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from relational_tensat.base.escaping import escaped
from relational_tensat.base.files import write_aside
from relational_tensat.rules.taso.repair import STATUSES, Judgement
from relational_tensat.rules.text import expr_text, rule_text


def judged_text(judgements: Sequence[Judgement], source: str) -> str:
    """Return a rule file: every rule with what was found out about it in a comment before it.

    Args:
        source: the file that the rules are from.
    """
    totals = ", ".join(f"{count} {status}" for status, count in counts(judgements).items() if count)
    head = f"; {escaped(source)}, imported by relational-tensat rules import: {totals}.\n"
    return "\n".join([head, *(f"{_text(judgement)}\n" for judgement in judgements)])


def write_judged(path: Path, judgements: Sequence[Judgement], source: str) -> None:
    """Write a rule file; it appears complete or not at all.

    Raises:
        InputError: it cannot be written.
    """
    with write_aside(path) as aside:
        (aside / path.name).write_text(judged_text(judgements, source), "utf-8")


def counts(judgements: Sequence[Judgement]) -> dict[str, int]:
    """Return how many rules have each status."""
    return {
        status: sum(judgement.status == status for judgement in judgements) for status in STATUSES
    }


def finding(judgement: Judgement) -> str:
    """Return the condition, the counterexample or the reason in one line; "" for a sound rule."""
    if judgement.status == "sound if":
        return " ".join(map(expr_text, judgement.condition))
    return "" if judgement.status == "sound" else judgement.verdict.reason


def _text(judgement: Judgement) -> str:
    rule = judgement.rule
    file = Path(rule.file).name
    place = f"; {file}:{rule.line}" if rule.line else f"; {file}"
    status_text = f"{judgement.status} {finding(judgement)}".strip()
    return f"{escaped(f'{place}: {status_text}')}\n{rule_text(replace(rule, file=''))}"
