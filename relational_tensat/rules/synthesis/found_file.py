"""Found rules as a rule file: each with its law, its evidence, and what it saves where."""

from __future__ import annotations

import json
from collections.abc import Sequence

from relational_tensat.rules.synthesis.store import SynthesisStore

_MOST_MODELS = 4


def found_text(store: SynthesisStore, command: str) -> str:
    """Return the text of a rule file of all that was found.

    Args:
        command: that found it.
    """
    rows = store.rows("found", status="found")
    head = [f"; {len(rows)} rules, found by: {command}", "; A share is of a model's modelled cost."]
    rules = [
        "\n".join((*_told(evidence, trials, models), text))
        for _, text, evidence, trials, _, models, _ in rows
    ]
    return "\n\n".join(("\n".join(head), *rules)) + "\n"


def _told(evidence: str, trials: int, models: str) -> Sequence[str]:
    shares = sorted(json.loads(models).items(), key=lambda item: -item[1])[:_MOST_MODELS]
    lines = [f"; {evidence}, {trials} configurations"]
    if shares:
        lines.append("; saves " + ", ".join(f"{share:.2%} of {name}" for name, share in shares))
    return lines
