"""Values as people look at them: one line in a terminal, a table in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from relational_tensat.base.escaping import escaped

#: Rows of a table that are shown; the rest is counted.
SHOWN_ROWS = 20
_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True, repr=False)
class HtmlTable:
    """The rows of a query.

    Attributes:
        columns: their names.
        rows: the values, a tuple each.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)

    def column(self, name: str) -> list[Any]:
        """Return the values of a column.

        Raises:
            ValueError: there is no such column.
        """
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def __repr__(self) -> str:
        cells = [
            self.columns,
            *([_short(value) for value in row] for row in self.rows[:SHOWN_ROWS]),
        ]
        widths = [max(len(row[place]) for row in cells) for place in range(len(self.columns))]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
        if len(self) > SHOWN_ROWS:
            lines.append(f"… {len(self):,} rows")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        shown = [[_short(value) for value in row] for row in self.rows[:SHOWN_ROWS]]
        caption = f"{len(self):,} rows" if len(self) > SHOWN_ROWS else ""
        return html_table(self.columns, shown, caption)


def html_table(columns: Sequence[str], rows: Sequence[Sequence[object]], caption: str = "") -> str:
    """Return a table as HTML; nothing in it is taken for markup."""
    from html import escape  # its table of entities takes a while to import

    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(escaped(str(value)))}</td>" for value in row) + "</tr>"
        for row in rows
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_fields(title: str, fields: Sequence[tuple[str, object]]) -> str:
    """Return named values as an HTML table of two columns."""
    from html import escape  # as above

    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(escaped(str(value)))}</td></tr>"
        for name, value in fields
    )
    return f"<table><caption>{escape(title)}</caption><tbody>{rows}</tbody></table>"


def _short(value: object) -> str:
    text = escaped(str(value))
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"
