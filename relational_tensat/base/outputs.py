"""Where models are and outputs go: checked before any work is done, so that no output replaces an input."""

from __future__ import annotations

import mmap
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain, count
from pathlib import Path

from relational_tensat.base.errors import UsageError
from relational_tensat.base.files import real_path
from relational_tensat.base.option import OptionTree, options_in
from relational_tensat.base.records import record

#: The suffixes of pages that are written.
PAGE_SUFFIXES = (".html", ".htm")

#: Every DuckDB file has it after an 8-byte checksum.
_DUCKDB_MAGIC = b"DUCK"

#: The table that every run's database has.
_TABLE_OF_RUNS = "meta"


@record
class DefaultOutput:
    """Where a result is written that nobody named a place for: over nothing, even if that came later."""

    path: Path

    def free(self) -> Path:
        """Return the path, or the first of ``NAME.opt.1.SUFFIX`` and so on where nothing is."""
        places = (self.path.with_suffix(f".{k}{self.path.suffix}") for k in count(1))
        return next(path for path in chain((self.path,), places) if not _is_taken(path))


def check_database(db: Path | None, *, force: bool = False) -> None:
    """Check that a database may be made at ``db``: a run replaces only databases, and only if asked to.

    Raises:
        UsageError: the folder does not exist, or another kind of file is there (a killed run may have left
            an empty one), or another database, or a run's database without ``force``.
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


#: How files of each kind begin.
_BEGINNINGS = (
    ("a database", re.compile(rb".{8}DUCK", re.DOTALL)),
    ("a table of costs", re.compile(rb"PAR1")),
    ("a page", re.compile(rb"\s*<!doctype html", re.IGNORECASE)),
    ("a model", re.compile(rb'\s*\{\s*"format":\s*"relational_tensat\.graph"')),
    ("a μGraph", re.compile(rb'\s*\{\s*"format":\s*"relational_tensat \xce\xbcGraph')),
    ("a list of kernels", re.compile(rb'\s*\{\s*"format":\s*"relational_tensat kernels ')),
    ("verdicts on rules", re.compile(rb'\s*\{\s*"meaning":')),
    ("a certificate", re.compile(rb'\s*\{\s*"format":\s*1,\s*"made":')),
    ("an e-graph", re.compile(rb'\s*\{\s*"nodes":')),
    ("a choice of e-nodes", re.compile(rb'\s*\{\s*"cost":')),
)
#: Data of which nothing says what it is.
_UNKNOWN = "other data"
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_READ_BYTES = 4096
#: In a model's file, the key and the tag before the name of a file of data.
_LOCATION = b"\x0a\x08location\x12"
#: Files that DuckDB writes beside a database, and this package beside a model.
_BESIDE = {"a database": (".wal", ".wal.checkpoint", ".wal.recovery"), "a model": (".data",)}


@record
class Written:
    """The kind of file at a path that a command line names; argparse takes it as the path's type.

    Attributes:
        content: its kind, with an article.
        suffixes: of files of that kind; empty if any will do.
        holds: whether a file that does not say at its beginning what it is, is of that kind.
        is_folder: whether the path is one of a folder.
        names: of files that are written into the folder.
        is_marked: whether all of them say at their beginning what they are: no other text is replaced.
        is_new: whether the command itself refuses whatever is there.
    """

    content: str
    suffixes: Collection[str] = ()
    holds: Callable[[Path], bool] = lambda path: False
    is_folder: bool = False
    names: tuple[str, ...] = ()
    is_marked: bool = False
    is_new: bool = False

    def __call__(self, text: str) -> Path:
        """Convert a path."""
        return Path(text)


#: By what options say that they write.
PAGE = Written("a page", PAGE_SUFFIXES)
DATABASE = Written("a database")
NEW_DATABASE = Written("a database", is_new=True)
FOLDER = Written("a folder", is_folder=True)
KERNELS = Written(
    "kernels",
    is_folder=True,
    names=("kernels.json", "torch_operators.py", "test_torch_operators.py", "fused.cuh"),
)
CERTIFICATE = Written("a certificate", is_marked=True)
OF_OPTIONS = {
    "certificate": CERTIFICATE,
    "page": PAGE,
    "database": DATABASE,
    "folder": FOLDER,
    "kernels": KERNELS,
}


def check_options(
    options: OptionTree, outputs: Sequence[tuple[Path, Written]], inputs: Sequence[Path]
) -> None:
    """Check the paths of options, and others beside them, as ``check_outputs`` does.

    Raises:
        UsageError: a file would be lost.
    """
    read, written = [*inputs], [*outputs]
    for group, option in options_in(type(options)):
        value = getattr(getattr(options, group), option.field)
        if option.kind is not Path or value is None:
            continue
        if option.about.writes:
            written.append((value, OF_OPTIONS[option.about.writes]))
        elif option.container == "mapping":
            read += value.values()
        else:
            read += value if option.container else [value]
    check_outputs(written, read)


def check_outputs(outputs: Sequence[tuple[Path, Written]], inputs: Sequence[Path]) -> None:
    """Check that no output is an input, another output, or in place of a file of another kind.

    Args:
        inputs: files and folders that are read.

    Raises:
        UsageError: one is.
    """
    read = [*inputs, *_data_of(inputs, [path for path, _ in outputs])]
    taken = {place: path for path in read for place in _places(path)}
    for path, written in outputs:
        if not written.is_new:
            _check_place(path, written)
        own = [place for name in _all_names(path, written) for place in _places(name)]
        for place in own:
            if place in taken:
                other = taken[place]
                role = "is read, too" if other in read else "is another output, too"
                same = "" if other == path else f" (as {other})"
                raise UsageError(f"{path}: {role}{same}, expected another name")
        taken |= dict.fromkeys(own, path)


def _check_place(path: Path, written: Written) -> None:
    try:
        mode = path.stat().st_mode
    except OSError:  # nothing is there; where nothing can be, the command says so
        return
    if stat.S_ISDIR(mode):
        if not written.is_folder:
            raise UsageError(f"{path}: is a folder, expected a file name")
        _check_folder(path, written)
        return
    if written.is_folder:
        raise UsageError(f"{path}: is a file, expected a folder")
    if not stat.S_ISREG(mode):
        raise UsageError(f"{path}: is no regular file, expected {written.content}")
    if path.stat().st_size:
        _check_content(path, written)


def _check_folder(path: Path, written: Written) -> None:
    """Check that files of the names that are written are what was written there before."""
    there = [name for name in written.names if (path / name).exists()]
    if there and _content_of(path / written.names[0]) != "a list of kernels":
        raise UsageError(
            f"{path}: has a file {there[0]}, and no list of kernels; it is not overwritten"
        )


def _check_content(path: Path, written: Written) -> None:
    """Check that a file that is there may be replaced by one of its kind."""
    content = _content_of(path)
    is_other = bool(written.suffixes) and not path.name.lower().endswith(tuple(written.suffixes))
    if content == _UNKNOWN and written.holds(path):
        content = written.content
    if content != written.content and (content or is_other or written.is_marked):
        raise UsageError(
            f"{path}: exists and is not {written.content}, it is not overwritten; expected another name"
        )


def _content_of(path: Path) -> str:
    """Return the kind of a file; "" for any other text, or a file that cannot be read."""
    try:
        with path.open("rb") as file:
            start = file.read(_READ_BYTES)
    except OSError:
        return ""
    for content, beginning in _BEGINNINGS:
        if beginning.match(start):
            return content
    return _UNKNOWN if _BINARY.search(start) else ""


def _is_known(path: Path) -> bool:
    return _content_of(path) not in ("", _UNKNOWN)


def _data_of(inputs: Sequence[Path], outputs: Sequence[Path]) -> list[Path]:
    """Return those files among outputs that hold the data of a model that is read."""
    files = {real_path(path): path for path in outputs if path.is_file()}
    models = [path for path in inputs if files and path.is_file() and not _is_known(path)]
    places = {place for model in models for place in _data_places(model)}
    return [path for place, path in files.items() if place in places]


def _data_places(model: Path) -> Iterator[Path]:
    """Yield the files that an ONNX model names as those of its data; other files name none."""
    if not model.stat().st_size:
        return
    with model.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        at = content.find(_LOCATION)
        while at >= 0:
            begin, size, shift = at + len(_LOCATION), 0, 0
            for byte in content[begin : begin + 5]:  # the length, seven bits a byte
                size, shift, begin = size | (byte & 0x7F) << shift, shift + 7, begin + 1
                if byte < 0x80:
                    break
            name = content[begin : begin + min(size, _READ_BYTES)]
            yield real_path(model.parent / os.fsdecode(name.replace(b"\0", b"")))
            at = content.find(_LOCATION, begin)


def _all_names(path: Path, written: Written) -> list[Path]:
    """Return a path, and those of what is written beside it; of a folder, those in it."""
    if written.is_folder:
        return [path / name for name in written.names]
    beside = _BESIDE.get(written.content, ())
    return [path, *(path.with_name(path.name + suffix) for suffix in beside)]


def _places(path: Path) -> list[object]:
    """Return what tells a file from others, by whichever of its names; it need not be there yet."""
    places: list[object] = [real_path(path)]
    try:
        state = path.stat()
    except (OSError, ValueError):
        return places
    return [*places, (state.st_dev, state.st_ino)]
