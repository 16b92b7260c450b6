"""DuckDB as the rooms use it: connections, statements and errors, from its compiled module.

The package ``duckdb`` has the same ones. It adds queries that are built in Python (``connection.sql``) and
scans of Arrow's tables, and these take 50 of the 60 ms of its import. A caller that wants either imports
it, too.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from pathlib import Path

from relational_tensat.base.errors import MissingDependencyError
from relational_tensat.base.folders import is_utf8, utf8_name

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

_Settings = Mapping[str, str | bool | int | float | list[str]]
#: A view, macro or index of a stranger's database can name any file, and any extension to load. So nothing
#: but the database itself is read or written.
_CLOSED: _Settings = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
}
#: Of what is closed only when it has what it needs.
_CLOSED_LATER = {key: value for key, value in _CLOSED.items() if key != "enable_external_access"}
#: Readers leave no files beside a database, which may lie anywhere, and change no setting.
_READING: _Settings = {"temp_directory": "", "lock_configuration": "true"}


def open_database(
    path: Path | None,
    settings: _Settings | None = None,
    *,
    writes: bool = False,
    attaches: Path | None = None,
) -> DuckDBPyConnection:
    """Return a connection to a database: all that this package opens are opened here.

    Args:
        path: its file; None for one in memory.
        settings: DuckDB's.
        writes: whether it may be changed, or made; else it is read-only.
        attaches: the one other database that may be attached to it.

    Raises:
        Error: the file is no database, or another process has it open.
    """
    name = ":memory:" if path is None else database_name(path)
    reads = path is not None and not writes
    config = {**(_READING if reads else {}), **(settings or {})}
    if attaches is None:
        return _compiled.connect(name, read_only=reads, config={**_CLOSED, **config})
    connection = _compiled.connect(name, read_only=reads, config={**_CLOSED_LATER, **config})
    _close_but_for(connection, database_name(attaches))
    return connection


def _close_but_for(connection: DuckDBPyConnection, name: str) -> None:
    """Let a connection read and write one more database, and nothing else from now on."""
    allowed = [name + suffix for suffix in ("", *LOGS)]
    connection.execute("SET allowed_paths = $allowed", {"allowed": allowed})
    connection.execute("SET enable_external_access = false")


def open_lake(catalogue: Path, reads: Sequence[Path]) -> DuckDBPyConnection:
    """Return a connection whose database ``lake`` is a DuckLake catalogue, made if it does not exist.

    Args:
        catalogue: its file; its tables are in the folder ``CATALOGUE.files``.
        reads: folders whose files statements may read.

    Raises:
        MissingDependencyError: DuckDB has no extension ``ducklake`` here.
        Error, OSError: the file is no catalogue or cannot be made, or another process has it open.
    """
    name = database_name(catalogue)
    connection = _compiled.connect(":memory:", config=_CLOSED_LATER)
    try:
        connection.execute("LOAD ducklake")
    except (IOException, CatalogException):
        version = importlib.metadata.version("duckdb")
        raise MissingDependencyError(
            f"DuckDB {version} has no extension ducklake here, expected: INSTALL ducklake, by that DuckDB"
        ) from None
    folders = [utf8_name(folder.resolve()) + "/" for folder in reads]
    connection.execute(
        "SET allowed_directories = $allowed", {"allowed": [*folders, f"{name}.files/"]}
    )
    _close_but_for(connection, name)
    Path(f"{name}.files").mkdir(exist_ok=True)  # DuckDB may make folders below it only
    text = f"ducklake:{name}".replace("'", "''")
    connection.execute(f"ATTACH '{text}' AS lake")
    return connection


#: Files that DuckDB puts beside a database: the log of its changes, and that log's name during a rename.
LOGS = (".wal", ".wal.checkpoint", ".wal.recovery")


def database_name(path: Path) -> str:
    """Return a path as DuckDB shall have it: ``:memory:`` and ``md:name`` are files here as others are.

    Raises:
        IOException: DuckDB takes no such path.
    """
    if not is_utf8(path.name):  # its log would be beside a link
        raise IOException("the name is not UTF-8, and DuckDB takes no other")
    name = utf8_name(path)
    if "?" in name:
        raise IOException(
            "DuckDB takes no path with a question mark: it looks for its log elsewhere"
        )
    return name


def is_ctrl_c(error: BaseException) -> bool:
    """Whether DuckDB has made this error of a ``KeyboardInterrupt`` that was raised while it ran."""
    return isinstance(error, RuntimeError) and str(error) == "Query interrupted"


def import_package() -> None:
    """Have connections queries built in Python, and statements read tables of Arrow, from now on."""
    import duckdb  # noqa: F401
