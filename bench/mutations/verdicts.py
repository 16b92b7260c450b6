"""Verdicts on rules that are wrong somewhere, and on rules like them that are right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from relational_tensat.base.runner import spread_over
from relational_tensat.rules.library import read_rule_file
from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness.parallel import verified
from relational_tensat.rules.soundness.verdict import Verdict

_FOLDER = Path(__file__).parent


def rules_that_are(word: str) -> list[Rule]:
    """Return the rules of ``wrong.rules``, of which none holds everywhere, or of ``right.rules``."""
    return read_rule_file(_FOLDER / f"{word}.rules")


def judged(seed: int, jobs: int) -> tuple[list[str], list[str]]:
    """Judge both files; return a line for each, and one for each rule that is judged wrongly."""
    lines: list[str] = []
    mistakes: list[str] = []
    for word in ("wrong", "right"):
        rules, on = rules_that_are(word), spread_over(max(1, jobs))
        results = list(verified(rules, seed=seed, shrink=False, on=on))
        counts = Counter(result.verdict.status for result in results)
        seconds = sum(result.seconds for result in results)
        totals = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
        lines.append(f"{len(results)} {word} rules in {seconds:.0f} s: {totals}")
        mistakes += _mistakes(word, [result.verdict for result in results])
    return lines, mistakes


def _mistakes(word: str, verdicts: Sequence[Verdict]) -> Iterator[str]:
    for verdict in verdicts:
        if (verdict.status == "sound") is (word == "wrong"):
            yield f"{verdict.rule} ({word}) is {verdict.status}: {verdict.reason}"
