"""What a synthesis leaves: found rules as a rule file, and a page about what became of each law."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from bench.synthesis.store import SynthesisStore

_MOST_MODELS = 4
#: Laws that a page has.
_MOST_LAWS = 2_000


def found_text(store: SynthesisStore, command: str) -> str:
    """Return the text of a rule file: each rule with its law, its evidence, and what it saves where.

    Args:
        command: that found it.
    """
    rows = store.rows("found")
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


def page_text(store: SynthesisStore) -> str:
    """Return a page without scripts: the funnel, the stages, and what became of the laws."""
    fates = store.rows("fates", most=_MOST_LAWS)
    laws = [
        (law, status, f"{gain:.2%}" if gain else "", ", ".join(models), note)
        for law, status, gain, models, note in fates
    ]
    stages = [(name, rows, f"{cpu_s:.1f} s") for name, rows, cpu_s in store.rows("stages")]
    left_out = len(store.rows("laws")) - len(fates)
    rules = (text for _, text, *_ in store.rows("found"))
    return "\n".join((
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Rules that were found</title>',
        "<style>body { font-family: sans-serif } td { padding: 0 1em; vertical-align: top }</style>",
        "<h1>Rules that were found</h1>",
        _table("Funnel", ("of what", "number"), store.rows("funnel")),
        _table("Stages", ("stage", "left over", "CPU time"), stages),
        _table("Laws", ("law", "became", "may save", "of", "note"), laws),
        *([f"<p>{left_out} more are in the file</p>"] if left_out else []),
        "<h2>Rules</h2>",
        *(f"<pre>{escape(rule)}</pre>" for rule in rules),
    )) + "\n"  # fmt: skip


def _table(title: str, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [
        f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>"
        for row in (names, *rows)
    ]
    return "\n".join((f"<h2>{title}</h2>", "<table>", *lines, "</table>"))
