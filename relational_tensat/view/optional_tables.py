"""Tables that only some runs leave."""

from __future__ import annotations

from relational_tensat.base import duckdb


def has_table(connection: duckdb.DuckDBPyConnection, name: str) -> bool:
    """Whether a run left such a table."""
    rows = connection.execute(
        "SELECT count(*) > 0 FROM duckdb_tables() WHERE table_name = ?", [name]
    ).fetchall()
    return bool(rows[0][0])
