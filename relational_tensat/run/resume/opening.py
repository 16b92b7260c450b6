"""Opening the database of a run that may have been killed at any moment, without changing it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from relational_tensat.base import duckdb
from relational_tensat.base.closing import Closing
from relational_tensat.base.errors import InputError, first_line
from relational_tensat.base.paths import is_database
from relational_tensat.egraph.database import FORMAT_VERSION
from relational_tensat.explore.checkpoint import Checkpoint, read_checkpoint
from relational_tensat.rules.targets.known import FUSED_FILE
from relational_tensat.run.resume.record import RunRecord, record_of_rows

#: A DuckDB file begins with three blocks of 4 KiB; a file with less was not finished being made.
_LEAST_BYTES = 3 * 4096

_NOT_STARTED = "the run was killed before exploration had begun: start it again"


class OpenedRun(Closing):
    """A run's database, read-only. What is in its log of changes is seen, and left where it is."""

    def __init__(self, path: Path) -> None:
        """Open a database, and check that a run of this version has made it.

        Raises:
            InputError: there is no such file, it is another kind of file, its tables are of another
                version, or another process is writing it.
        """
        self._path = path
        self._connection = _connect(path)
        try:
            self._check_version()
        except InputError:
            self._connection.close()
            raise

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def record(self) -> RunRecord:
        """Return how the run was requested.

        Raises:
            InputError: it was killed before it had written that, or never did.
        """
        rows = dict(self._rows("SELECT key, value FROM run_record"))
        if rows:
            return record_of_rows(rows)
        if self._rows("SELECT 1 FROM rule LIMIT 1"):
            raise InputError(
                f"{self._path}: the e-graph was not made by a run: nothing records how to resume it"
            )
        raise InputError(f"{self._path}: {_NOT_STARTED}")

    def checkpoint(self) -> Checkpoint:
        """Return where exploration was, or how it ended.

        Raises:
            InputError: it had not started.
        """
        checkpoint = read_checkpoint(self._connection)
        if checkpoint is None:
            raise InputError(f"{self._path}: {_NOT_STARTED}")
        return checkpoint

    def rules(self) -> dict[str, str]:
        """Return the run's rules by name, in order, as text."""
        rows = self._rows(
            "SELECT name, text FROM rule "
            f"WHERE id >= (SELECT max(first_rule) FROM checkpoint) AND file <> '{FUSED_FILE}' ORDER BY id"
        )
        return {str(name): str(text) for name, text in rows}

    def kernel_rules(self) -> dict[str, str]:
        """Return the rules of the model's own kernels by name, as text."""
        rows = self._rows(f"SELECT name, text FROM rule WHERE file = '{FUSED_FILE}'")
        return {str(name): str(text) for name, text in rows}

    def kernels(self) -> list[tuple[Any, ...]]:
        """Return the kernels of the model's own, as rows of their table."""
        return self._rows("FROM fused_kernel")

    def stop_reason(self) -> str | None:
        """Return why exploration ended; None if it had not."""
        rows = self._rows("SELECT value FROM meta WHERE key = 'stop_reason'")
        return str(rows[0][0]) if rows else None

    def is_extracted(self) -> bool:
        """Return whether the final extraction was done."""
        return bool(self._rows("SELECT 1 FROM extraction_log WHERE final LIMIT 1"))

    def _check_version(self) -> None:
        tables = {name for (name,) in self._rows("SELECT table_name FROM duckdb_tables()")}
        if not tables:
            raise InputError(f"{self._path}: {_NOT_STARTED}")
        version = None
        if "meta" in tables:
            rows = self._rows("SELECT value FROM meta WHERE key = 'format_version'")
            version = rows[0][0] if rows else None
        if version is None:
            raise InputError(f"{self._path}: not the database of a run of this program")
        if version != FORMAT_VERSION:
            raise InputError(
                f"{self._path}: the database has format {version}, expected {FORMAT_VERSION}: "
                "start the run again"
            )

    def _rows(self, text: str) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(text).fetchall()
        except duckdb.Error as error:
            reason = first_line(error)
            raise InputError(
                f"{self._path}: not the database of a run of this program: {reason}"
            ) from error


def _connect(path: Path) -> duckdb.DuckDBPyConnection:
    if not path.is_file():
        raise InputError(f"{path}: no such database file")
    size = path.stat().st_size
    if size and not is_database(path):
        raise InputError(f"{path}: not a database")
    if size < _LEAST_BYTES:
        raise InputError(f"{path}: {_NOT_STARTED}")
    try:
        return duckdb.open_database(path)
    except duckdb.Error as error:
        reason = first_line(error)
        if "set lock" in reason:  # damaged blocks are another matter
            reason = "another process uses it: does the run still use it?"
        raise InputError(f"{path}: cannot be opened: {reason}") from error
