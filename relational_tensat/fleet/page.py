"""The page of a fleet: all models in one HTML file, made of the ledger's tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from relational_tensat.base.shown_text import HtmlLink, html_table
from relational_tensat.fleet.task import CHANGED, KEPT, FleetRow

_RULES_SHOWN = 30
_STYLE = """body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em }
table { border-collapse: collapse; margin: 1.5em 0 }
caption { font-weight: 600; padding-bottom: .4em; text-align: left }
td, th { border-bottom: 1px solid #ccc; padding: .2em .8em .2em 0; text-align: left }"""


def fleet_page(rows: Sequence[FleetRow], folder: Path) -> str:
    """Return a page about the models of a fleet, as HTML.

    Args:
        folder: where the page goes: it leads to the page of each model that has one there.
    """
    done = [row for row in rows if row.state in (CHANGED, KEPT)]
    others = [row for row in rows if row.state not in (CHANGED, KEPT)]
    states = ", ".join(
        f"{count} {state}" for state, count in sorted(Counter(r.state for r in rows).items())
    )
    tables = [
        html_table(
            (
                "model",
                "state",
                "times as fast",
                "99 % interval",
                "basis",
                "seconds",
                "machine",
                "note",
            ),
            [_shown(row, folder) for row in sorted(done, key=lambda row: -(row.speedup or 1.0))],
            "Models, the largest gain first",
        )
    ]
    rules = _rules(done)
    if rules:
        columns = ("rule", "results that need it", "µs saved in all", "models it was left out of")
        tables.append(
            html_table(columns, rules[:_RULES_SHOWN], "Rules, those that saved most first")
        )
    if others:
        reasons = [(row.model, row.state, row.reason) for row in others]
        tables.append(html_table(("model", "state", "why"), reasons, "Models without a result"))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Fleet</title>'
        f"<style>{_STYLE}</style></head><body><h1>{len(rows)} models: {states or 'none'}</h1>"
        + "".join(tables)
        + "</body></html>\n"
    )


def _shown(row: FleetRow, folder: Path) -> tuple[object, ...]:
    page = Path(row.model).with_suffix(".html")
    name = HtmlLink(row.model, page.as_posix()) if (folder / page).exists() else row.model
    interval = "" if row.low is None else f"{row.low:.3f} to {row.high:.3f}"
    speedup = "" if row.speedup is None else f"{row.speedup:.3f}"
    return name, row.state, speedup, interval, row.basis, f"{row.wall_s:.1f}", row.host, row.reason


def _rules(rows: Sequence[FleetRow]) -> list[tuple[object, ...]]:
    """Return rules: how many results need each, and what it saved where that was asked for."""
    needed = Counter(rule for row in rows for rule, _ in row.rules)
    saved: defaultdict[str, list[float]] = defaultdict(list)
    for row in rows:
        for rule, saved_us in row.savings:
            saved[rule].append(saved_us)
    order = sorted(needed, key=lambda rule: (-sum(saved[rule]), -needed[rule], rule))
    return [
        (
            rule,
            needed[rule],
            f"{sum(saved[rule]):.1f}" if saved[rule] else "",
            len(saved[rule]) or "",
        )
        for rule in order
    ]
