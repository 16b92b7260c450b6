"""TENSAT's table 5, its published figures beside ours: what do constraints against cycles cost?

With them (t real, t integer) the program is solved on the e-graph as explored, cycles and all;
without them on the e-graph from which cycles were filtered while it grew. Ours is run on both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.extract.egraphs import Exploration
from bench.extract.methods import Answer
from bench.extract.report import Row, answer_of, cell, format_table

_FILE = Path(__file__).parents[1] / "data" / "tensat_table5.json"
_UNKNOWN = "-"

#: The columns: which e-graph (unfiltered or not), which method, which published figure stands beside.
COLUMNS: tuple[tuple[str, str, str, str | None], ...] = (
    ("real t", "none", "paper-real", "real_s"),
    ("int t", "none", "paper-int", "int_s"),
    ("no t", "efficient", "paper-none", "none_s"),
    ("ours, cyclic", "none", "ours", None),
    ("ours, filtered", "efficient", "ours", None),
)


@dataclass(frozen=True, slots=True)
class Published:
    """A row of the published table; seconds as printed there."""

    model: str
    k_multi: int
    real_s: str
    int_s: str
    none_s: str


def published() -> dict[tuple[str, int], Published]:
    """Return the published rows by model and k_multi."""
    rows = json.loads(_FILE.read_text(encoding="utf-8"))["runs"]
    return {(row["model"], row["k_multi"]): Published(**row) for row in rows}


def unfiltered(explorations: Sequence[Exploration]) -> list[Exploration]:
    """Return, for those of the explorations that the published table has, the cyclic ones."""
    published_runs = published()
    return [
        replace(exploration, cycle_filter="none")
        for exploration in explorations
        if (exploration.model, exploration.k_multi) in published_runs
    ]


def table_5(rows: Sequence[Row]) -> str:
    """Return the table: per model and k_multi what was published and what was measured here.

    Args:
        rows: of the family ``models``; their notes say which exploration they are of.
    """
    by_key = {_key(row): row for row in rows if row["family"] == "models"}
    header = ["model", "k", "e-nodes, cyclic / filtered"]
    for column, _, _, key in COLUMNS:
        header += [f"TENSAT {column}", column] if key else [column]
    lines = []
    for (model, k_multi), published_run in published().items():
        pair = {f: by_key.get((model, k_multi, f)) for f in ("none", "efficient")}
        if not any(pair.values()):
            continue
        sizes = " / ".join(_size(pair[f]) for f in ("none", "efficient"))
        cells = [
            text
            for _, cycle_filter, method, key in COLUMNS
            for text in _cells(published_run, key, pair[cycle_filter], method)
        ]
        lines.append((model, str(k_multi), sizes, *cells))
    if not lines:
        return ""
    return (
        "TENSAT's table 5 (SCIP's seconds as published; the paper's e-graphs, machine and costs differ)\n"
        + format_table(header, lines)
    )


def _cells(published_run: Published, key: str | None, row: Row | None, method: str) -> list[str]:
    own_cell = _UNKNOWN if row is None else _own(row, method)
    if key is None:
        return [own_cell]
    return [f"{getattr(published_run, key)} s", own_cell]


def _own(row: Row, method: str) -> str:
    answer: Answer | None = answer_of(row, method)
    costs = [result.cost for result in row["answers"] if result.cost is not None]
    return cell(answer, min(costs, default=None))


def _key(row: Row) -> tuple[str, int, str]:
    settings: Mapping[str, Any] = row["notes"]["settings"]
    return settings["model"], settings["k_multi"], settings["cycle_filter"]


def _size(row: Row | None) -> str:
    return _UNKNOWN if row is None else f"{row['e_nodes']:,}"
