"""Files: reading and writing so that errors are one line and no file is ever half-written.

The SQL and rule files are found in a source checkout and in an installed wheel alike.
"""

from __future__ import annotations

import errno
import gzip
import io
import logging
import os
import select
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from io import BufferedReader
from pathlib import Path
from typing import IO

from relational_tensat.base.errors import InputError
from relational_tensat.base.folders import PrivateFolder

_PACKAGE = Path(__file__).resolve().parent.parent


@cache
def resource_dir(kind: str) -> Path:
    """Return the folder ``sql``, ``rules`` or ``bench/inputs``.

    Raises:
        FileNotFoundError: neither the checkout nor the wheel has it.
    """
    for candidate in (_PACKAGE.parent / kind, _PACKAGE / "_resources" / kind):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"the folder {kind!r} is neither beside nor inside {_PACKAGE}")


@cache
def sql(name: str) -> str:
    """Return the text of ``sql/NAME.sql``."""
    return (resource_dir("sql") / f"{name}.sql").read_text(encoding="utf-8")


#: The most bytes that are read from a source that says no size.
MOST_BYTES = 1 << 30
#: So long the first writer of a pipe is waited for.
_FOR_A_WRITER_MS: int | None = 2000
#: The first bytes of packed files; no JSON text begins so.
_GZIP = b"\x1f\x8b"


def check_file(path: Path, expected: str = "a model file") -> None:
    """Check that there is a file.

    Args:
        expected: the form that the file should have, for messages.

    Raises:
        InputError: it does not exist, is a folder, or cannot be looked at.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if stat.S_ISDIR(mode):
        raise InputError(f"{path}: is a folder, expected {expected}")
    if not stat.S_ISREG(mode):
        raise InputError(f"{path}: is a device or a pipe, expected {expected}")


def real_path(path: Path) -> Path:
    """Return a path without links: as ``Path.resolve``, which raises for links that lead to each other."""
    return Path(os.path.realpath(path))


def read_bytes(path: Path, expected: str = "a model file") -> bytes:
    """Return the content of a file that must not be empty.

    Args:
        expected: the form that the file should have, for messages.

    Raises:
        InputError: it does not exist, is a folder, cannot be read, has 0 bytes, or has no end.
    """
    check_file(path, expected)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if not data:
        raise InputError(f"{path}: the file is empty (0 bytes)")
    return data


def whole_content(path: Path, most_bytes: int | None = None) -> bytes:
    """Return the content of a file, unpacked if it is packed by gzip.

    Of what has no size, a pipe or a device, and of what is packed, there is a limit: both may have no end.

    Args:
        most_bytes: that it may have; None for ``MOST_BYTES``, and of a regular file any number.

    Raises:
        OSError: it cannot be read.
        InputError: it has more, is not packed as it says, or is a pipe that nobody writes into.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # else a pipe waits for a writer
    with os.fdopen(descriptor, "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if stat.S_ISFIFO(mode):
            content = _limited(_Pipe(file, path), path, "", most_bytes)
        else:
            os.set_blocking(file.fileno(), True)
            any_number = stat.S_ISREG(mode) and most_bytes is None
            content = file.read() if any_number else _limited(file, path, "", most_bytes)
    if not content.startswith(_GZIP):
        return content
    try:
        with gzip.open(io.BytesIO(content)) as packed:
            return _limited(packed, path, "unpacked, it ", most_bytes)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: not packed by gzip, or truncated: {error}") from error


class _Pipe:
    """A pipe that does not block: it is waited for once somebody has it open to write, and no sooner."""

    def __init__(self, file: BufferedReader, path: Path) -> None:
        self._file, self._path = file, path

    def read(self, most_bytes: int) -> bytes:
        """Read until the writers have ended, or there are so many bytes.

        Raises:
            InputError: there is no writer.
        """
        waiting = select.poll()
        waiting.register(self._file, select.POLLIN)
        content, timeout_ms = bytearray(), _FOR_A_WRITER_MS
        while len(content) < most_bytes:
            has_event = waiting.poll(timeout_ms)
            part = self._file.raw.read(min(1 << 16, most_bytes - len(content)))
            if part is not None and not has_event and not part:
                raise InputError(f"{self._path}: is a pipe that nobody writes into")
            if part == b"":
                break
            content += part or b""
            timeout_ms = None
        return bytes(content)


def _limited(
    file: IO[bytes] | gzip.GzipFile | _Pipe, path: Path, what: str, most_bytes: int | None
) -> bytes:
    most_bytes = most_bytes or MOST_BYTES
    content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise InputError(f"{path}: {what}has more than {most_bytes >> 20} MiB, the limit")
    return content


def is_disk_full(error: BaseException | None) -> bool:
    """Whether an error, of the system or of a library, or its cause, says that a disk has no room."""
    if error is None:
        return False
    return any(os.strerror(code) in str(error) for code in _FULL) or is_disk_full(error.__cause__)


_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


@contextmanager
def unless_full() -> Iterator[None]:
    """Write into a cache in the block: where the disk is full, nothing is kept, and a line says so."""
    try:
        yield
    except (InputError, OSError) as error:
        if not is_disk_full(error):
            raise
        _log.warning("not kept in a cache: %s", error)


_log = logging.getLogger("relational_tensat")


@contextmanager
def write_aside(path: Path) -> Iterator[Path]:
    """Give a fresh folder beside ``path``; move its files beside ``path`` when the block succeeds.

    When the block raises, nothing is left behind.

    Raises:
        InputError: the folder of ``path`` does not exist or cannot be written.
    """
    with folder_beside(path) as aside:
        yield aside
        move_into_place(aside, path)


@contextmanager
def folder_beside(path: Path) -> Iterator[Path]:
    """Give a fresh hidden folder beside ``path``, which is removed at the end.

    Raises:
        InputError: the folder of ``path`` does not exist or cannot be written.
    """
    if path.is_dir():
        raise InputError(f"{path}: is a folder, expected the name of a file to write")
    try:
        with PrivateFolder(path.parent, path.name) as aside:
            try:
                yield aside.path
            except InputError as error:  # of a file that is gone by then
                text = str(error).replace(str(aside.path / path.name), str(path))
                error.args = (text, *error.args[1:])
                raise
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None


def move_into_place(folder: Path, path: Path) -> None:
    """Move the files of a folder beside ``path``: renames within one file system.

    ``path`` itself is moved last, so that it never refers to a data file that is not there yet.
    """
    for file in sorted(folder.iterdir(), key=lambda file: file.name == path.name):
        file.replace(path.parent / file.name)
