"""The tables of the extraction bench."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.extract.methods import Answer

Row = Mapping[str, Any]
"""An instance as ``Instance.describe`` says it, with its ``answers``."""

LEGEND = (
    "A cell says how far the cost is above the best known, and CPU seconds (wall seconds where a limit"
    " was met).\n"
    "'=' at the best; '*' proven optimal; 'gap' what the extractor itself has not excluded; 't/o' its"
    " time was over;\n"
    "'none' no solution by then; 'cyclic' the answer is no graph; '-' not run."
)
_INDENT = 2
_UNKNOWN = "-"


def family_tables(rows: Sequence[Row], methods: Sequence[str]) -> str:
    """Return a table per family of e-graphs: a row an instance, a column a method."""
    blocks = []
    for family in dict.fromkeys(row["family"] for row in rows):
        members = [row for row in rows if row["family"] == family]
        header = ("instance", "e-nodes", "classes", "", "best known", *methods)
        blocks.append(f"{family}\n{format_table(header, [_row(row, methods) for row in members])}")
    return "\n\n".join([*blocks, LEGEND])


def details(rows: Sequence[Row]) -> str:
    """Return every answer on a line: cost, bound, gap, and both kinds of seconds."""
    header = (
        "instance",
        "method",
        "status",
        "cost",
        "bound",
        "gap",
        "CPU s",
        "wall s",
        "e-nodes left",
    )
    lines = [
        (
            row["instance"],
            answer.method,
            answer.status,
            _UNKNOWN if answer.cost is None else f"{answer.cost:,.6f}",
            f"{answer.bound:,.6f}",
            _UNKNOWN if answer.gap is None else f"{answer.gap:.3%}",
            f"{answer.cpu_s:.2f}",
            f"{answer.wall_s:.2f}",
            _UNKNOWN if answer.reduced is None else f"{answer.reduced[0]:,}",
        )
        for row in rows
        for answer in row["answers"]
    ]
    return format_table(header, lines)


def summary(rows: Sequence[Row], methods: Sequence[str]) -> str:
    """Return, per method, how many e-graphs it has at the best known cost, and proven, and its time."""
    header = ("method", "e-graphs", "best", "optimal", "no graph", "CPU s", "wall s")
    lines = []
    for method in methods:
        pairs = [(row, answer_of(row, method)) for row in rows]
        answered = [(row, answer) for row, answer in pairs if answer and answer.status != "skipped"]
        lines.append((
            method,
            str(len(answered)),
            str(sum(answer.cost is not None and _at(answer.cost, best_known(r)) for r, answer in answered)),
            str(sum(answer.status == "optimal" for _, answer in answered)),
            str(sum(answer.cost is None for _, answer in answered)),
            f"{sum(answer.cpu_s for _, answer in answered):.1f}",
            f"{sum(answer.wall_s for _, answer in answered):.1f}",
        ))  # fmt: skip
    return "All e-graphs\n" + format_table(header, lines)


def best_known(row: Row) -> float | None:
    """Return the least cost that anything reached, or the planted optimum."""
    costs = [answer.cost for answer in row["answers"] if answer.cost is not None]
    if row["optimum"] is not None:
        costs.append(row["optimum"])
    return min(costs, default=None)


def answer_of(row: Row, method: str) -> Answer | None:
    """Return a method's answer for an instance, or None where it was not run."""
    return next((answer for answer in row["answers"] if answer.method == method), None)


def cell(answer: Answer | None, best: float | None) -> str:
    """Return one answer in a few characters; see ``LEGEND``."""
    if answer is None or answer.status == "skipped":
        return _UNKNOWN
    if answer.status in ("no solution", "cyclic"):
        text = "none" if answer.status == "no solution" else "cyclic"
        return f"{text} {answer.wall_s:.1f} s"
    assert answer.cost is not None
    above = _above(answer.cost, best)
    if answer.status == "optimal":
        return f"{above}* {answer.cpu_s:.2f} s"
    if answer.status == "done":
        return f"{above} {answer.cpu_s:.2f} s"
    gap = "" if answer.gap is None else f" gap {answer.gap:.1%}"
    return f"{above}{gap} t/o {answer.wall_s:.1f} s"


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Align columns: the first to the left, all others to the right."""
    table = [header, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    lines = []
    for row in table:
        cells = [
            text.ljust(width) if column == 0 else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((" " * _INDENT + "  ".join(cells)).rstrip())
    lines.insert(1, " " * _INDENT + "-" * (max(map(len, lines)) - _INDENT))
    return "\n".join(lines)


def _row(row: Row, methods: Sequence[str]) -> tuple[str, ...]:
    best = best_known(row)
    return (
        row["instance"],
        f"{row['e_nodes']:,}",
        f"{row['e_classes']:,}",
        "cyclic" if row["cyclic"] else "",
        _UNKNOWN if best is None else f"{best:,.6g}",
        *(cell(answer_of(row, method), best) for method in methods),
    )


def _above(cost: float, best: float | None) -> str:
    if _at(cost, best):
        return "="
    assert best is not None
    return f"+{cost / best - 1:.1%}" if best > 0 else f"+{cost:.3g}"


def _at(cost: float, best: float | None) -> bool:
    return best is None or cost <= best * (1 + 1e-6)
