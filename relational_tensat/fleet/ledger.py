"""The ledger of a fleet: a DuckDB file that one process writes, and tables beside it that all may read.

While a fleet runs, its process has the file open, and others cannot. So they read the tables as Parquet,
written again now and then. A second fleet in the folder is refused for the same reason.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from relational_tensat.base import duckdb
from relational_tensat.base.errors import InputError, first_line
from relational_tensat.base.files import check_file, sql, write_aside
from relational_tensat.egraph.database import limit_planning
from relational_tensat.fleet.task import FleetRow, FleetTask, now

if TYPE_CHECKING:
    from types import TracebackType

_T = TypeVar("_T")
#: Its name in the output folder; the tables beside it are ``TABLE.parquet``.
LEDGER = "fleet.duckdb"
TABLES = ("fleet_run", "fleet_attempt", "fleet_rule_use", "fleet_rule_saving")
_COLUMNS = tuple(each.name for each in fields(FleetRow) if each.name not in ("rules", "savings"))
_NAMES = ", ".join(_COLUMNS)
_FORMAT = "4"
#: Tables are written so often while a fleet runs; seldom enough that it takes no more than such a share.
_EXPORTED_EVERY_S, _EXPORTING = 2.0, 0.03
#: Model, attempt, ending, host, outcome, and the report; of a beginning, the first two.
_Event = tuple[str, int, str | None, str | None, str | None, str | None]
#: How an attempt ended, beside the states of a row.
CANCELLED = "cancelled"


class Ledger:
    """The outcome of each model.

    Attributes:
        path: of the file.
    """

    def __init__(self, folder: Path) -> None:
        """Take the ledger of an output folder; it need not be there."""
        self.path = folder / LEDGER

    def rows(self) -> list[FleetRow]:
        """Return all rows, by the models' names; none where there is no ledger.

        Of a fleet that runs, they are some seconds old, and have no reports.

        Raises:
            InputError: the file is no ledger, or one of another version.
        """
        return _rows(self.table)

    def table(self, table: str, columns: str) -> list[tuple[Any, ...]]:
        """Return some columns of one of ``TABLES``.

        Raises:
            InputError: as ``rows``.
        """
        if not self.path.exists():
            return []
        check_file(self.path, "the ledger of a fleet")
        try:
            with closing(duckdb.open_database(self.path)) as connection:
                if not connection.execute("SELECT 1 FROM duckdb_tables()").fetchall():
                    return []  # its fleet was killed when it began
                _check_format(connection, self.path)
                return connection.execute(f"SELECT {columns} FROM {table}").fetchall()
        except duckdb.Error as error:
            if "set lock" in str(error) and self.exported(table).exists():
                import pyarrow.parquet as pq

                names = columns.split(", ")
                content = pq.read_table(self.exported(table)).to_pydict()
                return list(zip(*(content[name] for name in names), strict=True))
            raise InputError(
                f"{self.path}: the ledger cannot be read: {first_line(error)}"
            ) from error

    def write(self) -> OpenLedger:
        """Open the file, for one process; make it if it is not there.

        Raises:
            InputError: it cannot be made or opened, or another fleet has it open.
        """
        if self.path.exists():
            check_file(self.path, "the ledger of a fleet")
        try:
            # Rows come one by one: several threads only take longer to be told.
            connection = duckdb.open_database(self.path, {"threads": 1}, writes=True)
            if connection.execute("SELECT 1 FROM duckdb_tables()").fetchall():
                _check_format(connection, self.path)
            else:
                connection.execute(f"BEGIN; {sql('fleet/schema')} COMMIT;")
            limit_planning(connection)
        except duckdb.Error as error:
            raise InputError(
                f"{self.path}: the ledger cannot be written: {first_line(error)}"
            ) from error
        return OpenLedger(self.path, connection, self._export)

    def exported(self, table: str) -> Path:
        """Return the path of one of ``TABLES`` as Parquet."""
        return self.path.with_name(f"{table}.parquet")

    def _export(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Write each table as Parquet, completely or not at all; of runs, all but the reports."""
        import pyarrow.parquet as pq

        duckdb.import_package()
        for table in TABLES:
            columns = "* REPLACE (NULL::VARCHAR AS report)" if table == "fleet_run" else "*"
            content = connection.sql(f"SELECT {columns} FROM {table}").to_arrow_table()
            path = self.exported(table)
            with write_aside(path) as aside:
                pq.write_table(content, aside / path.name)


class OpenLedger:
    """A ledger that this process writes; a context manager."""

    def __init__(
        self,
        path: Path,
        connection: duckdb.DuckDBPyConnection,
        export: Callable[[duckdb.DuckDBPyConnection], None],
    ) -> None:
        self._path, self._connection, self._export = path, connection, export
        self._next_export_s = 0.0

    def __enter__(self) -> OpenLedger:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        try:
            self._export(self._connection)
        finally:
            self._connection.close()

    def rows(self) -> list[FleetRow]:
        """Return all rows, by the models' names."""
        return _rows(self.table)

    def table(self, table: str, columns: str) -> list[tuple[Any, ...]]:
        """Return some columns of one of ``TABLES``."""
        return self._connection.execute(f"SELECT {columns} FROM {table}").fetchall()

    def end(self, task: FleetTask, ending: str, host: str = "") -> None:
        """Note that a task ended without a row.

        Raises:
            InputError: the file cannot be written.
        """
        self._note([(task.model, task.attempts, ending, host, None, None)])

    def keep(self, rows: Sequence[FleetRow], begun: Sequence[FleetTask] = ()) -> None:
        """Write what became of models, instead of what was known of them, and which tasks begin now.

        All of it lands once, or nothing does. Where nothing follows on a task, its fleet was killed.

        Raises:
            InputError: the file cannot be written.
        """
        ended: list[_Event] = [
            (row.model, row.attempts, row.state, row.host, _as_json(row), row.report)
            for row in rows
        ]
        begins: list[_Event] = [
            (task.model, task.attempts, None, None, None, None) for task in begun
        ]
        self._note([*ended, *begins])
        start_s = time.monotonic()
        if (rows or begun) and start_s > self._next_export_s:
            self._export(self._connection)
            end_s = time.monotonic()
            pause_s = max(_EXPORTED_EVERY_S, (end_s - start_s) / _EXPORTING)
            self._next_export_s = end_s + pause_s

    def _note(self, events: Sequence[_Event]) -> None:
        """Write events in one statement: to be planned and kept is most of what a statement takes."""
        if not events:
            return
        values = ", ".join(["(?, ?, ?, ?, ?, ?, ?)"] * len(events))
        moment = now()
        try:
            self._connection.execute(
                f"INSERT INTO fleet_event VALUES {values}",
                [value for each in events for value in (*each[:2], moment, *each[2:])],
            )
        except duckdb.Error as error:
            raise InputError(
                f"{self._path}: the ledger cannot be written: {first_line(error)}"
            ) from error


def _as_json(row: FleetRow) -> str:
    """Return a row as the tables read it; JSON has no word for an infinite bound."""
    values = {name: getattr(row, name) for name in _COLUMNS[:-1]}
    values |= {
        "ended": row.ended.isoformat(),
        "high": str(row.high) if row.high == math.inf else row.high,
        "rules": [{"rule": rule, "uses": uses} for rule, uses in row.rules],
        "savings": [{"rule": rule, "saved_us": saved_us} for rule, saved_us in row.savings],
    }
    return json.dumps(values, allow_nan=False)


def _check_format(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    try:
        found = connection.execute("SELECT version FROM fleet_format").fetchall()
    except duckdb.CatalogException:
        found = []
    if found != [(_FORMAT,)]:
        raise InputError(
            f"{path}: the ledger cannot be used: it is no ledger, or one of another version of this "
            "program, expected another folder"
        )


def _rows(table: Callable[[str, str], list[tuple[Any, ...]]]) -> list[FleetRow]:
    runs = table("fleet_run", _NAMES)
    uses = table("fleet_rule_use", "model, rule, uses")
    savings = table("fleet_rule_saving", "model, rule, saved_us")
    return [
        replace(
            FleetRow(*values),
            rules=_of_model(uses, values[0]),
            savings=_of_model(savings, values[0]),
        )
        for values in sorted(runs)
    ]


def _of_model(rows: Sequence[tuple[Any, ...]], model: str) -> tuple[tuple[Any, Any], ...]:
    return tuple(sorted((rule, value) for name, rule, value in rows if name == model))
