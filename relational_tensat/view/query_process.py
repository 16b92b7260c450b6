"""A query of somebody's own, in a process of its own: it imports little, and has little memory."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from relational_tensat.base import duckdb
from relational_tensat.base.errors import UsageError, first_line
from relational_tensat.view.data.graph_data import to_json

#: Rows of an answer that are sent.
MOST_ROWS = 2_000
#: Of the process, addresses included; its time, if nobody ends it; of DuckDB in it.
_MOST_BYTES, _MOST_CPU_S, _MEMORY_LIMIT = 4 << 30, 60, "1GB"


def answered(
    connection: duckdb.DuckDBPyConnection, query: str, most: int = MOST_ROWS
) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...], bool]:
    """Return the columns of a query's answer, its first rows, and whether there are more.

    Raises:
        UsageError: the query is wrong, would change something, or was interrupted.
    """
    try:
        result = connection.execute(query)
        if result is None or result.description is None:
            raise UsageError(f"the query is empty: {query!r}")
        columns = tuple(str(column[0]) for column in result.description)
        rows = result.fetchmany(most + 1)
    except duckdb.InterruptException as error:
        raise UsageError("the query was stopped") from error
    except duckdb.Error as error:
        raise UsageError(first_line(error)) from error
    return columns, tuple(rows[:most]), len(rows) > most


def main() -> None:
    """Answer the query on standard input about the database that is named, by one JSON object."""
    with suppress(ImportError, ValueError, OSError):  # Windows, or a stricter limit of the user's
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (_MOST_CPU_S, _MOST_CPU_S))
    try:
        with duckdb.open_database(Path(sys.argv[1]), {"memory_limit": _MEMORY_LIMIT}) as connection:
            query = sys.stdin.buffer.read().decode("utf-8", "replace")
            columns, rows, is_cut = answered(connection, query)
        text = to_json({"columns": columns, "rows": rows, "is_cut": is_cut})
    except (UsageError, duckdb.Error) as error:
        text = to_json({"error": first_line(error)})
    except MemoryError:
        text = to_json({"error": "the query needs too much memory"})
    sys.stdout.write(text)
    sys.stdout.flush()
    os._exit(0)  # what a query has made need not be taken apart


if __name__ == "__main__":
    main()
