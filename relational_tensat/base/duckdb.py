"""DuckDB as the rooms use it: connections, statements and errors, from its compiled module.

The package ``duckdb`` has the same ones, and adds queries that are built in Python (``connection.sql``) and
scans of Arrow's tables: 50 of the 60 ms that importing it takes. Who wants either imports it, too.
"""

from __future__ import annotations

try:
    from _duckdb import (
        CatalogException,
        DuckDBPyConnection,
        Error,
        FatalException,
        InternalException,
        InterruptException,
        IOException,
        OutOfMemoryException,
        ParserException,
        Statement,
        StatementType,
        TransactionException,
        connect,
    )
except ImportError:  # its name is DuckDB's own affair
    from duckdb import (
        CatalogException,
        DuckDBPyConnection,
        Error,
        FatalException,
        InternalException,
        InterruptException,
        IOException,
        OutOfMemoryException,
        ParserException,
        Statement,
        StatementType,
        TransactionException,
        connect,
    )


def import_package() -> None:
    """Have connections queries built in Python, and statements read tables of Arrow, from now on."""
    import duckdb  # noqa: F401


__all__ = [
    "CatalogException",
    "DuckDBPyConnection",
    "Error",
    "FatalException",
    "IOException",
    "InternalException",
    "InterruptException",
    "OutOfMemoryException",
    "ParserException",
    "Statement",
    "StatementType",
    "TransactionException",
    "connect",
    "import_package",
]
