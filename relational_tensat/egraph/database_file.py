"""The file of a database: removed where a run replaces it, unless some process has it open.

Where it is damaged or the disk is full, DuckDB raises errors that are no fault of the program.
"""

from __future__ import annotations

import os
from pathlib import Path

from relational_tensat.base import duckdb
from relational_tensat.base.errors import InputError, first_line
from relational_tensat.base.files import real_path

_KINDS = (duckdb.IOException, duckdb.FatalException, duckdb.InternalException)
_TEXTS = ("Corrupt", "checksum", "No space left", "Could not write", "Could not read")


def file_trouble(error: Exception) -> str:
    """Return in one line what is wrong with the database's file or disk; "" where it is something else."""
    if not isinstance(error, duckdb.Error):
        return ""
    reason = first_line(error)
    if isinstance(error, _KINDS) or any(text in reason for text in _TEXTS):
        return f"the database is damaged, or its disk full: {reason}"
    return ""


try:
    import fcntl
except ImportError:  # Windows, which removes no file that is open
    fcntl = None  # type: ignore[assignment]  # a module where there is one

#: The databases that this process has open; a lock of the system keeps only other processes out.
_OPEN: set[Path] = set()


def remove_database(path: Path) -> None:
    """Remove a database, and what a killed process may have left beside it: logs of its changes.

    DuckDB holds a lock of the system on each file that it has open, for reading, too. While the file is
    removed the same lock is held here: of two runs that begin at once only one removes it.

    Raises:
        InputError: this or another process has it open.
        OSError: it cannot be removed.
    """
    if real_path(path) in _OPEN:
        raise InputError(f"{path}: is in use by another run of this process")
    while not _removed(path):
        pass  # another process has replaced it meanwhile: that one is looked at


def note_open(path: Path) -> None:
    """Remember that this process has a database open."""
    _OPEN.add(real_path(path))


def note_closed(path: Path) -> None:
    """Forget a database that was closed."""
    _OPEN.discard(real_path(path))


def _removed(path: Path) -> bool:
    """Remove a file and its logs; return False if it was replaced by another just then."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        _remove_logs(path)
        return True
    try:
        _lock(descriptor, path)
        try:
            if path.stat().st_ino != os.fstat(descriptor).st_ino:
                return False
        except FileNotFoundError:
            return False
        path.unlink()
        _remove_logs(path)
        return True
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path) -> None:
    if fcntl is None:
        return
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InputError(
            f"{path}: is in use by another process: does a run still use it?"
        ) from None


def _remove_logs(path: Path) -> None:
    for suffix in duckdb.LOGS:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
