"""What a database holds, as far as two runs of the same model must agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import duckdb

#: The rows of tables by their names.
Tables: TypeAlias = dict[str, list[tuple[Any, ...]]]

#: Where a run was, and under which names: of no matter once it has ended.
_LEFT_OUT = {"checkpoint", "run_record", "rule_time", "run_event", "time_spent"}
#: How long things took, and how many statements: a process that resumes needs some more.
_MEASURED = {"seconds", "statements"}


def dump(connection: duckdb.DuckDBPyConnection) -> Tables:
    """Return the rows of every table, ids and all, sorted."""
    tables = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE NOT temporary ORDER BY table_name"
    ).fetchall()
    return {table: _rows(connection, table) for (table,) in tables if table not in _LEFT_OUT}


def dump_file(path: Path) -> Tables:
    """Return the rows of every table of a file, which stays as it is."""
    with duckdb.connect(str(path), read_only=True) as connection:
        return dump(connection)


def _rows(connection: duckdb.DuckDBPyConnection, table: str) -> list[tuple[Any, ...]]:
    columns = [name for name, *_ in connection.execute(f"DESCRIBE {table}").fetchall()]
    kept_columns = ", ".join(name for name in columns if name not in _MEASURED)
    return sorted(connection.execute(f"SELECT {kept_columns} FROM {table}").fetchall(), key=repr)
