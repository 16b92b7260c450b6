"""A table that can be written as CSV and as Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

#: None is not known; text is a word such as ``time-out``.
Value: TypeAlias = str | int | float | None

#: Digits after the point that CSV keeps.
_CSV_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        title: with the unit; "published" where the figure is not ours.
        digits: after the point, in Markdown.
    """

    title: str
    digits: int = 2


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        name: of its files.
        title: one line.
        note: what a reader must know, in sentences.
        listed: whether Markdown has its rows; False for the points of a plot.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    note: str
    listed: bool = True

    def csv(self) -> str:
        """Return the table as CSV; what is not known is empty."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([column.title for column in self.columns])
        writer.writerows([_plain(value) for value in row] for row in self.rows)
        return file.getvalue()

    def markdown(self) -> str:
        """Return the table as Markdown, with its title and note."""
        if not self.listed:
            return f"## {self.title}\n\n{self.note} The points are in {self.name}.csv.\n"
        header = [column.title for column in self.columns]
        ruler = ["---", *["---:"] * (len(header) - 1)]
        body = [
            [
                _formatted(value, column.digits)
                for value, column in zip(row, self.columns, strict=True)
            ]
            for row in self.rows
        ]
        lines = [table_row(cells) for cells in (header, ruler, *body)]
        return "\n".join([f"## {self.title}", "", *lines, "", self.note, ""])


def table_row(cells: Sequence[str]) -> str:
    """Return a row of a Markdown table, without the end of its line."""
    return f"| {' | '.join(cells)} |"


def _plain(value: Value) -> Value:
    return round(value, _CSV_DIGITS) if isinstance(value, float) else value


def _formatted(value: Value, digits: int) -> str:
    match value:
        case None:
            return "-"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.{digits}f}"
        case _:
            return value


def columns(*titles: str | Sequence[object]) -> tuple[Column, ...]:
    """Return columns of titles; a pair is a title and its digits."""
    result = []
    for title_and_digits in titles:
        if isinstance(title_and_digits, str):
            result.append(Column(title_and_digits))
        else:
            title, digits = title_and_digits
            result.append(Column(str(title), int(str(digits))))
    return tuple(result)
