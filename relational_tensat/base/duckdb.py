"""DuckDB as the rooms use it: connections, statements and errors, from its compiled module.

The package ``duckdb`` has the same ones, and adds queries that are built in Python (``connection.sql``) and
scans of Arrow's tables: 50 of the 60 ms that importing it takes. Who wants either imports it, too.
"""

from __future__ import annotations

try:
    import _duckdb as _compiled
except ImportError:  # its name is DuckDB's own affair
    import duckdb as _compiled  # type: ignore[no-redef]  # has the same names

CatalogException = _compiled.CatalogException
DuckDBPyConnection = _compiled.DuckDBPyConnection
Error = _compiled.Error
FatalException = _compiled.FatalException
InternalException = _compiled.InternalException
InterruptException = _compiled.InterruptException
IOException = _compiled.IOException
OutOfMemoryException = _compiled.OutOfMemoryException
ParserException = _compiled.ParserException
Statement = _compiled.Statement
StatementType = _compiled.StatementType
TransactionException = _compiled.TransactionException
connect = _compiled.connect


def import_package() -> None:
    """Have connections queries built in Python, and statements read tables of Arrow, from now on."""
    import duckdb  # noqa: F401
