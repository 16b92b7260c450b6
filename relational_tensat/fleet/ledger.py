"""The ledger of a fleet: a DuckDB file that one process writes, and anybody may ask between two rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import TypeVar

from relational_tensat.base import duckdb
from relational_tensat.base.errors import InputError, first_line
from relational_tensat.base.files import check_file, sql
from relational_tensat.fleet.task import FleetRow

_T = TypeVar("_T")
#: Its name in the output folder.
LEDGER = "fleet.duckdb"
_COLUMNS = tuple(each.name for each in fields(FleetRow) if each.name != "rules")
#: So long it is tried again while another process has the file open, which is for a row only.
_PATIENCE_S, _PAUSE_S = 5.0, 0.02


class Ledger:
    """What became of each model. The file is open while it is read or written, and no longer.

    Attributes:
        path: of the file.
    """

    def __init__(self, folder: Path) -> None:
        """Take the ledger of an output folder; it need not be there."""
        self.path = folder / LEDGER

    def create(self) -> None:
        """Make the tables where there are none.

        Raises:
            InputError: the file cannot be made or opened.
        """
        self._with(lambda connection: connection.execute(sql("fleet/schema")), writes=True)

    def rows(self) -> list[FleetRow]:
        """Return all rows, by the models' names; none where there is no ledger.

        Raises:
            InputError: the file is no ledger.
        """
        if not self.path.exists():
            return []
        check_file(self.path, "the ledger of a fleet")
        query = f"SELECT {', '.join(_COLUMNS)} FROM fleet_run ORDER BY model"
        found = self._with(lambda connection: connection.execute(query).fetchall())
        return [FleetRow(*values) for values in found]

    def keep(self, row: FleetRow) -> None:
        """Write what became of a model, instead of what was known of it: once, or not at all.

        Raises:
            InputError: the file cannot be opened or written.
        """
        values = {name: getattr(row, name) for name in _COLUMNS}
        parameters = ", ".join(f"${name}" for name in _COLUMNS)

        def write(connection: duckdb.DuckDBPyConnection) -> None:
            connection.execute("BEGIN")
            connection.execute(
                f"INSERT OR REPLACE INTO fleet_run ({', '.join(_COLUMNS)}) VALUES ({parameters})",
                values,
            )
            connection.execute(
                "DELETE FROM fleet_rule_use WHERE model = $model", {"model": row.model}
            )
            for rule, uses in row.rules:
                connection.execute(
                    "INSERT INTO fleet_rule_use VALUES ($model, $rule, $uses)",
                    {"model": row.model, "rule": rule, "uses": uses},
                )
            connection.execute("COMMIT")

        self._with(write, writes=True)

    def _with(self, act: Callable[[duckdb.DuckDBPyConnection], _T], *, writes: bool = False) -> _T:
        start_s = time.monotonic()
        while True:
            try:
                with closing(duckdb.open_database(self.path, writes=writes)) as connection:
                    return act(connection)
            except duckdb.Error as error:
                is_taken = "lock" in str(error) and time.monotonic() - start_s < _PATIENCE_S
                if not is_taken:
                    raise InputError(
                        f"{self.path}: the ledger cannot be {'written' if writes else 'read'}: "
                        f"{first_line(error)}"
                    ) from error
            time.sleep(_PAUSE_S)
