"""The tables of the public e-graphs: a row a file, and the methods beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.common.table import table_row
from bench.public_egraphs.solvers import Solved

#: The answers to a file, by method.
Answers = Mapping[str, Solved]

_EQUAL = 1e-6
_HEADER = ("file", "e-nodes", "classes", "method", "status", "cost", "bound", "gap", "CPU s")
_SUMMARY = ("method", "files", "proven", "at the best cost", "sum of gaps", "no graph", "CPU s")


def markdown(rows: Mapping[str, Answers], methods: Sequence[str]) -> str:
    """Return the summary, every answer, and what cannot all be true."""
    parts = [
        _table(_SUMMARY, [_summary(rows, method) for method in methods]),
        _table(
            _HEADER, [_cells(file, method, row) for file, row in rows.items() for method in row]
        ),
        *(f"- {line}" for line in contradictions(rows)),
    ]
    return "\n".join(parts)


def contradictions(rows: Mapping[str, Answers]) -> list[str]:
    """Return, in words, where a bound is above a cost that another method reached."""
    return [
        f"{file}: {method} bounds by {answer.bound:g} what {other} has at {found.cost:g}"
        for file, row in rows.items()
        for method, answer in row.items()
        for other, found in row.items()
        if found.cost is not None and answer.bound > found.cost + _EQUAL * max(1.0, abs(found.cost))
    ]


def _summary(rows: Mapping[str, Answers], method: str) -> tuple[str, ...]:
    pairs = [(row, row[method]) for row in rows.values() if method in row]
    answers = [answer for _, answer in pairs]
    gaps = [answer.gap for answer in answers if answer.gap is not None]
    return (
        method,
        str(len(answers)),
        str(sum(answer.status == "optimal" for answer in answers)),
        str(sum(_is_best(answer, row) for row, answer in pairs)),
        f"{sum(gaps):.1%}" if gaps else "-",
        str(sum(answer.cost is None for answer in answers)),
        f"{sum(answer.cpu_s for answer in answers):.1f}",
    )


def _is_best(answer: Solved, row: Answers) -> bool:
    if answer.cost is None:
        return False
    best = min(other.cost for other in row.values() if other.cost is not None)
    return answer.cost <= best + _EQUAL * max(1.0, abs(best))


def _cells(file: str, method: str, row: Answers) -> tuple[str, ...]:
    answer = row[method]
    is_first = method == next(iter(row))
    return (
        file if is_first else "",
        f"{answer.e_nodes:,}" if is_first else "",
        f"{answer.e_classes:,}" if is_first else "",
        method,
        answer.status,
        "-" if answer.cost is None else f"{answer.cost:,.8g}",
        "-" if answer.gap is None else f"{answer.bound:,.8g}",
        "-" if answer.gap is None else f"{answer.gap:.2%}",
        f"{answer.cpu_s:.2f}",
    )


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"{table_row(line)}\n" for line in lines)
