"""Text that people look at: values in a terminal or a notebook, and names from files.

People read such a name; no terminal or compiler acts on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

#: Characters that terminals act on, or do not show: controls, C1 too, changes of direction, those without
#: width, separators of lines, surrogates, and unassigned ones.
_HIDDEN = re.compile(r"[^\x20-\x7e]")
#: Characters that neither end a comment or a string in a language, nor begin an escape there.
_NOT_PLAIN = re.compile(r"[^ \w.,:=+<>()\[\]{}@→-]")


def escaped(text: str, keep: str = "") -> str:
    """Return a text with what is no visible character written as ``\\x1b`` or ``\\u202e``.

    Args:
        keep: characters that stay whatever they are.
    """
    return _HIDDEN.sub(lambda found: _shown(found[0], keep), text)


def escaped_in_code(text: str) -> str:
    """Return a text that can stand in a comment or a docstring of any language, on one line."""
    return _NOT_PLAIN.sub(lambda found: _numbered(found[0]).replace("\\", "%"), text)


def storable(text: str) -> str:
    """Return a text as a database may have it: paths may have bytes that are not UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def _shown(character: str, keep: str) -> str:
    return character if character.isprintable() or character in keep else _numbered(character)


def _numbered(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


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


@dataclass(frozen=True, slots=True)
class HtmlLink:
    """A cell that leads to a file, which is named beside the page's own."""

    text: str
    path: str


def html_table(columns: Sequence[str], rows: Sequence[Sequence[object]], caption: str = "") -> str:
    """Return a table as HTML; nothing in it is taken for markup."""
    from html import escape  # its table of entities takes a while to import
    from urllib.parse import quote

    def cell(value: object) -> str:
        if isinstance(value, HtmlLink):  # after ./ and with no colon, it is no script
            return (
                f'<a href="./{quote(value.path, errors="surrogateescape")}">{cell(value.text)}</a>'
            )
        return escape(escaped(str(value)))

    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{cell(value)}</td>" for value in row) + "</tr>" for row in rows
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
