"""Where models are and outputs go, checked before any work is done."""

from __future__ import annotations

import os
from itertools import chain, count
from pathlib import Path

from relational_tensat.base.errors import UsageError, nearest
from relational_tensat.base.files import check_file
from relational_tensat.base.records import record

#: The suffixes of the model formats.
SUFFIXES = (".json", ".onnx")

#: The suffixes of pages that are written.
PAGE_SUFFIXES = (".html", ".htm")

#: Every DuckDB file has it after an 8-byte checksum.
_DUCKDB_MAGIC = b"DUCK"

#: The table that every run's database has.
_TABLE_OF_RUNS = "meta"


def model_suffix(path: Path) -> str:
    """Return which of ``SUFFIXES`` a model's file has.

    Raises:
        UsageError: it has another one.
    """
    suffix = path.suffix.lower()
    if suffix in SUFFIXES:
        return suffix
    hint = nearest(suffix, SUFFIXES) if suffix else ""
    raise UsageError(f"{path}: the suffix {suffix!r} is not one of .json and .onnx{hint}")


def check_model(path: Path) -> None:
    """Check that a model may be in a file, without reading it.

    Raises:
        UsageError: its suffix is of no known format.
        InputError: it does not exist or is a folder.
    """
    model_suffix(path)
    check_file(path)


@record
class DefaultOutput:
    """Where a result is written that nobody named a place for: over nothing, even if that came later."""

    path: Path

    def free(self) -> Path:
        """Return the path, or the first of ``NAME.opt.1.SUFFIX`` and so on where nothing is."""
        places = (self.path.with_suffix(f".{k}{self.path.suffix}") for k in count(1))
        return next(path for path in chain((self.path,), places) if not _is_taken(path))


def check_output(output: str | Path | DefaultOutput | None, model: object) -> Path | None:
    """Return the output's path, if the model can be written there.

    Args:
        model: its path, or a graph.

    Raises:
        UsageError: the suffix is of no known format, the folder does not exist, or the path is a
            folder or the model itself.
    """
    if output is None:
        return None
    path = output.path if isinstance(output, DefaultOutput) else Path(output)
    if path.suffix.lower() not in SUFFIXES:
        hint = nearest(path.suffix.lower(), SUFFIXES)
        raise UsageError(f"{path}: the output's suffix must be {' or '.join(SUFFIXES)}{hint}")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: the folder {str(path.parent)!r} does not exist")
    if path.is_dir():
        raise UsageError(f"{path}: is a folder, expected a file name")
    if isinstance(model, str | Path) and path.exists() and path.samefile(Path(model)):
        raise UsageError(f"{path}: the output would overwrite the model")
    return path


def check_database(db: Path | None, *, force: bool = False) -> None:
    """Check that a database may be made at ``db``: a run replaces only databases, and only if asked to.

    Raises:
        UsageError: the folder does not exist, or another kind of file is there (an empty one may be
            what a killed run has left), or the database of something else, or of a run, and not ``force``.
    """
    if db is None:
        return
    if not db.parent.is_dir():
        raise UsageError(f"{db}: the folder {str(db.parent)!r} does not exist")
    if db.is_dir():
        raise UsageError(f"{db}: is a folder, expected a file name")
    if db.is_file() and db.stat().st_size and not is_database(db):
        raise UsageError(f"{db}: exists and is not a database, it is not overwritten")
    if db.is_file() and db.stat().st_size and _is_of_others(db):
        raise UsageError(f"{db}: is a database, but not that of a run, it is not overwritten")
    if db.is_file() and db.stat().st_size and not force:
        raise UsageError(
            f"{db}: is the database of another run; --force replaces it, run --resume {db} continues it"
        )


def check_page(page: Path | None) -> None:
    """Check that a page may be written at ``page``.

    Raises:
        UsageError: the folder does not exist, or it is one itself, or its suffix is not one of a page.
    """
    if page is None:
        return
    if page.suffix.lower() not in PAGE_SUFFIXES:
        raise UsageError(f"{page}: expected the name of a page, with {' or '.join(PAGE_SUFFIXES)}")
    if not page.parent.is_dir():
        raise UsageError(f"{page}: the folder {str(page.parent)!r} does not exist")
    if page.is_dir():
        raise UsageError(f"{page}: is a folder, expected a file name")


def default_output(model: str | Path, *, force: bool = False) -> Path | DefaultOutput:
    """Return where ``run`` writes by default: ``NAME.opt.SUFFIX`` in the current folder.

    Returns:
        The path, to be replaced, with ``force``.

    Raises:
        UsageError: something is there, and not ``force``: only a named file is replaced unasked.
    """
    source = Path(model)
    path = Path(f"{source.stem}.opt{source.suffix}")
    if force:
        return path
    if _is_taken(path):
        raise UsageError(
            f"{path}: exists already; -o names another file, --force replaces this one"
        )
    return DefaultOutput(path)


def _is_taken(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def is_database(path: Path) -> bool:
    """Whether a file begins as DuckDB's do."""
    with path.open("rb") as file:
        return file.read(12)[8:] == _DUCKDB_MAGIC


def _is_of_others(db: Path) -> bool:
    """Whether a database has tables, and none of a run; one that cannot be opened may be a run's."""
    from relational_tensat.base import duckdb  # most runs keep no database

    try:
        with duckdb.open_database(db) as connection:
            rows = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    except duckdb.Error:
        return False
    tables = {name for (name,) in rows}
    return bool(tables) and _TABLE_OF_RUNS not in tables


def check_folder(folder: Path | None) -> None:
    """Check that files may be written into a folder, which need not be there yet.

    Raises:
        UsageError: a file is there or above it, or nothing may be made there.
    """
    if folder is None:
        return
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise UsageError(f"{folder}: {there} is a file, expected a folder")
    if not os.access(there, os.W_OK):
        raise UsageError(f"{folder}: nothing may be written into {there}")
