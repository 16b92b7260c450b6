"""What DuckDB raises where a file is damaged or a disk is full: no fault of the program."""

from __future__ import annotations

from relational_tensat.base import duckdb
from relational_tensat.base.errors import first_line

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
