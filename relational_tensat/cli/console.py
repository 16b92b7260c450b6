"""Consoles: colour on a terminal that wants it, plain whole lines in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from relational_tensat.base.shown_text import escaped
from relational_tensat.cli.closed_output import LINES, exact

#: Pipes have no width: nothing is wrapped or cut there.
_PIPE_WIDTH = 100_000


class _Console(Console):
    """A console on which names from files do nothing; its caller decides on a closed output."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text as it is measured and printed."""
        return super().render_str(escaped(text, keep=LINES), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Yield the parts of what is printed; only this console's own controls are left as they are."""
        for part in super().render(renderable, options):
            yield part if part.control else part._replace(text=escaped(part.text, keep=LINES))

    def on_broken_pipe(self) -> None:
        """Raise the error on; rich would end the process with exit code 1."""
        raise


class _Table(Table):
    """A table of which a row is a row: a name that has several lines is shown on one."""

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        shown = [escaped(cell) if isinstance(cell, str) else cell for cell in cells]
        super().add_row(*shown, **options)


def stdout_console() -> Console:
    """Return a console on standard output; it honours NO_COLOR and TERM."""
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    return _Console(file=exact(sys.stdout), width=width, highlight=False, markup=False, emoji=False)


def stderr_console() -> Console:
    """Return a console on standard error; it honours NO_COLOR and TERM."""
    width = None if sys.stderr.isatty() else _PIPE_WIDTH
    return _Console(file=exact(sys.stderr), width=width, highlight=False, markup=False, emoji=False)


def text_of(show: Callable[[Console], None]) -> str:
    """Return what is shown on a console, as plain text."""
    stream = StringIO()
    show(
        _Console(
            file=stream, width=_PIPE_WIDTH, color_system=None, highlight=False, markup=False,
            emoji=False,
        )
    )  # fmt: skip
    return stream.getvalue()


def table(*columns: str, numbers: tuple[str, ...] = ()) -> Table:
    """Return an empty table; the columns named in ``numbers`` are aligned to the right."""
    result = _Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        if column in numbers:
            result.add_column(column, justify="right", no_wrap=True)
        else:
            result.add_column(column, overflow="fold")
    return result
