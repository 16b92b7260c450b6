"""A DuckDB connection that counts statements, names what it runs, and loads rows in bulk.

Statements go through those passes of DuckDB's planner that they need.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from numpy.typing import NDArray

from relational_tensat.base import duckdb
from relational_tensat.base.errors import InputError, NoSolutionError, UsageError, first_line
from relational_tensat.base.files import sql
from relational_tensat.base.folders import PrivateFolder, utf8_name
from relational_tensat.base.process import ProcessOptions
from relational_tensat.egraph.arrow_columns import arrow_column, plain_columns
from relational_tensat.egraph.database_file import (
    file_trouble,
    note_closed,
    note_open,
    remove_database,
)
from relational_tensat.egraph.stopwatch import StatementTime, Stopwatch

#: What DuckDB's planner may do. Our statements are many, small, and already in a good shape: planning
#: them is most of their cost, and the other passes take a sixth of it without ever paying. Joins stay as
#: they are written: to look for a better order costs a twelfth of all planning, and NasRNN's run at
#: k_multi 2 takes 1.4 times as long with what it finds.
OPTIMIZERS = frozenset(
    {
        "build_side_probe_side",
        "column_lifetime",
        "deliminator",
        "expression_rewriter",
        "filter_pullup",
        "filter_pushdown",
        "in_clause",
        "unnest_rewriter",
        "unused_columns",
    }
)


def limit_planning(connection: duckdb.DuckDBPyConnection) -> None:
    """Leave out all passes but ``OPTIMIZERS``."""
    optimizers = connection.execute("SELECT * FROM duckdb_optimizers()").fetchall()
    disabled = ",".join(sorted(name for (name,) in optimizers if name not in OPTIMIZERS))
    connection.execute(f"SET disabled_optimizers = '{disabled}'")


#: Up to so many rows, a statement with lists as parameters takes no longer than one that reads arrays, and
#: half as long as DuckDB's appender.
FEW_ROWS = 8

#: From so many rows on, Arrow is faster than appending one by one.
MANY_ROWS = 5_000

#: Written into every database; raised when a table changes its meaning.
FORMAT_VERSION = "13"


#: The arrays' name in the statement that reads them.
_ARRAYS = "relational_tensat_arrays"

#: Statements that return how many rows they changed.
_CHANGES = frozenset(
    {
        duckdb.StatementType.CREATE,
        duckdb.StatementType.DELETE,
        duckdb.StatementType.INSERT,
        duckdb.StatementType.UPDATE,
    }
)


class Interrupted(Exception):  # noqa: N818  # a control signal, not an error
    """A statement was stopped by ``Database.interrupt``."""


class OutOfMemory(NoSolutionError):  # noqa: N818
    """DuckDB reached its memory limit. Exploration ends there; elsewhere nothing else can be done."""


class Database:
    """The tables of one e-graph (a subgraph), and what it shares with others in the same database.

    Not thread-safe, except for ``interrupt``.

    Attributes:
        is_file: whether the tables outlive the process: committed rows are on the disk.
        process: its threads, its memory limit and the folder for what does not fit into that.
        statements: how many SQL statements have been run.
        stopwatch: the time that they took, by phase and name.
    """

    def __init__(
        self,
        path: Path | None = None,
        process: ProcessOptions | None = None,
        *,
        keep: bool = False,
        attaches: Path | None = None,
    ) -> None:
        """Open a database.

        Args:
            path: a file; None for a database in memory.
            process: its threads, its memory limit, and the folder for what does not fit into that: by
                default a private one beside the file, or among the system's temporary files.
            keep: continue in the file that is there. Else it is replaced: the caller has agreed to
                that by naming it.
            attaches: the one other database that may be attached.

        Raises:
            InputError: the file cannot be created or opened, or another run has it open.
            UsageError: the memory limit is too large for one, or there is no such folder.
            OutOfMemory: the memory limit does not suffice for an empty database.
        """
        self.is_file = path is not None
        process = process or ProcessOptions()
        self.process = process
        config: dict[str, str | bool | int | float | list[str]] = {"threads": process.threads}
        self._spills = _spill_folder(process.temp_directory, path)
        config["temp_directory"] = "" if self._spills is None else utf8_name(self._spills.path)
        if process.memory_limit is not None:
            config["memory_limit"] = process.memory_limit
        try:
            if path is not None and not keep:
                remove_database(path)
            self.connection = duckdb.open_database(path, config, writes=True, attaches=attaches)
        except (duckdb.Error, OSError) as error:
            if self._spills is not None:
                self._spills.close()
            if path is not None and not keep and path.is_file() and not path.stat().st_size:
                path.unlink()  # a full disk leaves an empty file
            reason = first_line(error)
            if isinstance(error, duckdb.ParserException):  # of a setting: a path is not parsed
                raise UsageError(f"--memory-limit {process.memory_limit}: {reason}") from error
            verb = "open" if keep else "create"
            raise InputError(f"{path}: cannot {verb} the database: {reason}") from error
        if self._spills is not None:  # which is there as long as a result has the connection
            weakref.finalize(self.connection, self._spills.close).atexit = False
        with _own_errors(path):
            limit_planning(self.connection)
        self._path = path
        if path is not None:
            note_open(path)
        self.statements = 0
        self.stopwatch = Stopwatch()
        self._stopped = False

    @property
    def threads(self) -> int:
        """How many a statement may use."""
        return self.process.threads

    def execute(
        self,
        text: str,
        params: Mapping[str, Any] | None = None,
        name: str = "generated",
        arrays: Any = None,
    ) -> list[tuple[Any, ...]]:
        """Run one statement and return all its rows (a change returns the count of rows).

        Args:
            arrays: values that the statement reads as ``relational_tensat_arrays``: arrays of NumPy by
                name, or Arrow's. It is registered until others are: that DuckDB looks for variables of
                Python is switched off together with its access to files.

        Raises:
            Interrupted: ``interrupt`` was called, before or while it ran.
            OutOfMemory: it needs more than the memory limit.
        """
        with self._running(name) as statement_time:
            (statement,) = _parse(self.connection, text)
            if arrays is not None:
                self.connection.register(_ARRAYS, arrays)
            rows = self.connection.execute(statement, params).fetchall()
            is_change = rows and statement.type in _CHANGES
            statement_time.rows += int(rows[0][0]) if is_change else len(rows)
            return rows

    def run(self, name: str, **params: Any) -> list[tuple[Any, ...]]:
        """Run the statement of ``sql/NAME.sql``; return its rows."""
        return self.execute(sql(name), params or None, name)

    def change(self, name: str, **params: Any) -> int:
        """Run ``sql/NAME.sql``, which inserts, updates, deletes or creates; return its row count."""
        rows = self.execute(sql(name), params or None, name)
        return int(rows[0][0]) if rows else 0

    def script(self, name: str) -> None:
        """Run the statements of ``sql/NAME.sql``, separated by semicolons."""
        self.execute_all(sql(name), name)

    def execute_all(self, text: str, name: str) -> None:
        """Run the statements of a text, separated by semicolons."""
        for statement in _parse(self.connection, text):
            with self._running(name):
                self.connection.execute(statement)

    def columns(self, name: str, **params: Any) -> dict[str, NDArray[Any]]:
        """Run the query of ``sql/NAME.sql``; return its columns, for the many rows of an e-graph."""
        return self.arrays(sql(name), name, params)

    def arrays(
        self, text: str, name: str, params: Mapping[str, Any] | None = None
    ) -> dict[str, NDArray[Any]]:
        """Run a query; return its columns."""
        with self._running(name) as statement_time:
            (statement,) = _parse(self.connection, text)
            columns = self.connection.execute(statement, params or None).fetchnumpy()
            statement_time.rows += len(next(iter(columns.values())))
            return dict(columns)

    def insert(self, table: str, columns: Mapping[str, Sequence[Any]]) -> None:
        """Append rows, given by columns in the table's order: many through Arrow, others by ``append``."""
        if len(next(iter(columns.values()))) >= MANY_ROWS:
            self.insert_arrays(table, columns, f"insert {table}")
        elif short := _short_insertion(table, list(columns.values())):
            self.execute(*short)
        else:
            self.append(table, list(zip(*columns.values(), strict=True)))

    def insert_arrays(self, table: str, columns: Mapping[str, Any], name: str) -> None:
        """Append rows, given by columns in the table's order, through Arrow.

        Args:
            columns: lists, or arrays of NumPy or Arrow.
            name: the statement's name in reports.
        """
        import pyarrow as pa  # only large e-graphs need it

        duckdb.import_package()
        batch = pa.table({key: arrow_column(values) for key, values in columns.items()})
        self.execute(_insertion(table), None, name, batch)

    def append(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Append rows. Counted as a statement; up to some thousands, it is faster than Arrow."""
        if not rows:
            return
        if short := _short_insertion(table, list(zip(*rows, strict=True))):
            self.execute(*short)
            return
        with self._running(f"insert {table}") as statement_time:
            statement_time.rows += len(rows)
            appender = self.connection.appender(table)
            try:
                appender.append_rows(rows)
                appender.flush()
            finally:
                appender.clear()

    def begin(self) -> None:
        """Start a transaction."""
        self._control("BEGIN")

    def commit(self) -> None:
        """End the transaction and keep what it did.

        Raises:
            Interrupted: ``interrupt`` was called just then; the transaction is lost. OutOfMemory: it needs
            more than the memory limit; ``rollback`` is what is left to do.
        """
        self._control("COMMIT")

    def rollback(self) -> None:
        """End the transaction, if it has not ended by an interrupt, and undo what it did."""
        while True:
            try:
                self._control("ROLLBACK")
            except Interrupted:
                continue
            except duckdb.TransactionException:
                return  # there is none: its COMMIT was interrupted
            return

    def interrupt(self) -> None:
        """Stop the running statement, and refuse others until ``resume``; from any thread."""
        self._stopped = True
        self.connection.interrupt()

    def resume(self) -> None:
        """Allow statements again after ``interrupt``."""
        self._stopped = False

    @property
    def is_interrupted(self) -> bool:
        """Whether statements are refused, since ``interrupt`` was called."""
        return self._stopped

    def check_interrupt(self) -> None:
        """Raise ``Interrupted`` if ``interrupt`` was called."""
        if self._stopped:
            raise Interrupted

    def close(self) -> None:
        """Close the database; a file keeps its tables."""
        self.connection.close()
        if self._spills is not None:
            self._spills.close()
        if self._path is not None:
            note_closed(self._path)

    @contextmanager
    def _running(self, name: str) -> Iterator[StatementTime]:
        """Count and time what runs inside; an interrupt and too little memory get their names."""
        self.check_interrupt()
        statement_time = self.stopwatch.time_of(name)
        started = time.perf_counter()
        try:
            with _own_errors(self._path):
                yield statement_time
        finally:
            self.statements += 1
            statement_time.count += 1
            statement_time.seconds += time.perf_counter() - started

    def _control(self, statement: str) -> None:
        statement_time = self.stopwatch.time_of(statement.lower())
        started = time.perf_counter()
        with _own_errors(self._path):
            self.connection.execute(_parse(self.connection, statement)[0])
        statement_time.count += 1
        statement_time.seconds += time.perf_counter() - started


def _short_insertion(
    table: str, columns: Sequence[Sequence[Any]]
) -> tuple[str, dict[str, list[Any]] | None, str, Any] | None:
    """Return how a statement appends rows, as ``execute`` takes it: of lists or of arrays; else None."""
    if not columns or not len(columns[0]):
        return None
    lists = {f"c{i}": list(column) for i, column in enumerate(columns)}
    name = f"insert {table}"
    if len(columns[0]) <= FEW_ROWS:
        values = ", ".join(f"unnest(${column})" for column in lists)
        return f"INSERT INTO {table} SELECT {values}", lists, name, None
    arrays = plain_columns(lists)
    return None if arrays is None else (_insertion(table), None, name, arrays)


def _insertion(table: str) -> str:
    return f"INSERT INTO {table} SELECT * FROM {_ARRAYS}"


@contextmanager
def _own_errors(path: Path | None) -> Iterator[None]:
    """Give an interrupt, too little memory, a damaged file and a full disk their names."""
    try:
        yield
    except duckdb.InterruptException as error:
        raise Interrupted from error
    except duckdb.OutOfMemoryException as error:
        raise _out_of_memory(error) from error
    except duckdb.TransactionException as error:
        if "could not allocate" in str(error):  # so COMMIT reports it
            raise _out_of_memory(error) from error
        _raise_file_trouble(error, path)
        raise
    except duckdb.Error as error:
        _raise_file_trouble(error, path)
        raise
    except RuntimeError as error:
        if duckdb.is_ctrl_c(error):
            raise KeyboardInterrupt from error
        raise


def _raise_file_trouble(error: duckdb.Error, path: Path | None) -> None:
    trouble = file_trouble(error)
    if trouble:
        raise InputError(f"{path or 'database in memory'}: {trouble}") from error


def _out_of_memory(error: duckdb.Error) -> OutOfMemory:
    reason = first_line(error).rpartition("Error: ")[2].removeprefix("Failed to commit: ")
    return OutOfMemory(f"the database's memory limit is reached: {reason}")


def _spill_folder(named: Path | None, database: Path | None) -> PrivateFolder | None:
    """Return a folder for what does not fit into memory; None where it has no place.

    Nothing can be spilled then, and DuckDB says that there is too little memory.

    Args:
        named: where the user wants it; else it is beside the database, or among temporary files.

    Raises:
        UsageError: the path that was named is no folder, or cannot be written.
    """
    if named is not None and not named.is_dir():
        raise UsageError(f"temp-directory {named}: no such folder")
    with suppress(OSError):
        if named is None and database is not None:
            return PrivateFolder(database.absolute().parent, database.name)
        return PrivateFolder(named or Path(gettempdir()))
    if named is not None:
        raise UsageError(f"temp-directory {named}: cannot be written")
    return None


def _parse(connection: duckdb.DuckDBPyConnection, text: str) -> Sequence[duckdb.Statement]:
    """Return the statements of a text, parsed once a process: parsing is a quarter of a statement's cost.

    Parsed statements belong to no connection.
    """
    statements = _PARSED.get(text)
    if statements is None:
        if len(_PARSED) >= _MOST_PARSED:
            _PARSED.clear()
        statements = _PARSED[text] = connection.extract_statements(text)
    return statements


_PARSED: dict[str, Sequence[duckdb.Statement]] = {}
_MOST_PARSED = 1024
