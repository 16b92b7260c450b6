"""Consoles: colour on a terminal that wants it, plain whole lines in a pipe."""

from __future__ import annotations

import sys

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

#: Pipes have no width: nothing is wrapped or cut there.
_PIPE_WIDTH = 100_000


class _Console(Console):
    """A console that leaves it to its caller what to do when nobody reads its output any more."""

    def on_broken_pipe(self) -> None:
        """Raise the error on; rich would end the process with exit code 1."""
        raise


def stdout_console() -> Console:
    """Return a console on standard output; it honours NO_COLOR and TERM."""
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    return _Console(file=sys.stdout, width=width, highlight=False, markup=False, emoji=False)


def stderr_console() -> Console:
    """Return a console on standard error; it honours NO_COLOR and TERM."""
    width = None if sys.stderr.isatty() else _PIPE_WIDTH
    return _Console(file=sys.stderr, width=width, highlight=False, markup=False, emoji=False)


def table(*columns: str, numbers: tuple[str, ...] = ()) -> Table:
    """Return an empty table; the columns named in ``numbers`` are aligned to the right."""
    result = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        if column in numbers:
            result.add_column(column, justify="right", no_wrap=True)
        else:
            result.add_column(column, overflow="fold")
    return result
