"""The tables that a finished run has left, which its page is made of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.base import duckdb
from relational_tensat.base.errors import InputError, first_line

if TYPE_CHECKING:
    from relational_tensat.view.run_page import RunPage


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
        from relational_tensat.view.collecting import collect  # few runs are looked at
        from relational_tensat.view.run_page import RunPage

        with self.opened() as connection:
            return RunPage(collect(connection, check=check))
