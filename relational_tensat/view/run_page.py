"""A run's page, as Python has it.

The tables that a finished run has left, which its page is made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path

from relational_tensat.base import duckdb
from relational_tensat.base.errors import InputError, first_line
from relational_tensat.view.data.page_data import PageData
from relational_tensat.view.document import page_html, write_page

#: Pixels of a page within a notebook.
_NOTEBOOK_HEIGHT = 760


@dataclass(frozen=True, slots=True, repr=False)
class RunPage:
    """The page of a run: shown where it is the value of a notebook's cell, or saved as a file.

    Attributes:
        data: what it shows.
    """

    data: PageData

    @property
    def html(self) -> str:
        """The self-contained document."""
        return page_html(self.data)

    def save(self, path: str | Path) -> Path:
        """Write the document, and return where it is.

        Raises:
            InputError: it cannot be written.
        """
        write_page(self.data, Path(path))
        return Path(path)

    def __repr__(self) -> str:
        summary = self.data.summary
        return (
            f"RunPage({summary.model}: {summary.gain}, in "
            f"{0 if self.data.film is None else len(self.data.film.steps)} steps)"
        )

    def _repr_html_(self) -> str:
        """Return a frame with the page, which can reach nothing of the notebook around it."""
        return (
            f'<iframe sandbox="allow-scripts" srcdoc="{escape(self.html)}" title="run"'
            f' style="width: 100%; height: {_NOTEBOOK_HEIGHT}px; border: 0"></iframe>'
        )


@dataclass(frozen=True, slots=True)
class RunTables:
    """Where the tables of a finished run are: in a file, or in memory, as long as this is there.

    Attributes:
        memory: a connection to those in memory; ``path`` is None then.
    """

    path: Path | None = None
    memory: duckdb.DuckDBPyConnection | None = None

    @contextmanager
    def opened(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Give a connection that changes nothing.

        Raises:
            InputError: the file is gone, or another process has it open.
        """
        if self.memory is not None:
            yield self.memory
            return
        try:
            connection = duckdb.open_database(self.path)
        except duckdb.Error as error:
            raise InputError(f"{self.path}: cannot be opened: {first_line(error)}") from error
        with connection:
            yield connection

    def page(self, *, check: bool = False) -> RunPage:
        """Return the run's page.

        Args:
            check: compute every tensor that a step replaces both ways.

        Raises:
            InputError: the tables cannot be read, or nothing was extracted.
        """
        from relational_tensat.view.collection import collect  # few runs are looked at

        with self.opened() as connection:
            return RunPage(collect(connection, check=check))
