"""Outputs: names from files are shown and do nothing; an output may be closed or full.

That standard output takes nothing is reported, standard error would not be seen.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO, cast

from relational_tensat.base.shown_text import escaped

#: Separators of lines and columns; all other invisible characters are written as escapes.
LINES = "\n\t"


class ShownOutput(io.TextIOBase):
    """A text stream on which no name from a file does anything, and every name can be written.

    Attributes:
        exact: the stream behind it.
    """

    def __init__(self, exact: TextIO) -> None:
        self.exact = exact

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the stream behind it."""
        return getattr(self.exact, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        """Write, with escapes for what is not seen, or is not in the encoding."""
        shown = escaped(text, keep=LINES)
        if not shown.isascii():
            shown = shown.encode(self.encoding, "backslashreplace").decode(self.encoding)
        self.exact.write(shown)
        return len(text)

    def flush(self) -> None:
        """Flush the stream behind it."""
        self.exact.flush()

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self.exact.isatty()

    def fileno(self) -> int:
        """Return the number of the stream's file."""
        return self.exact.fileno()


def write_line(text: str) -> None:
    """Write one line on standard output; names in it do nothing."""
    sys.stdout.write(escaped(text) + "\n")


@contextmanager
def shown_outputs() -> Iterator[None]:
    """Let nothing that is written in the block do anything to a terminal."""
    outputs = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", ShownOutput(output)) for output in outputs)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = outputs


def exact(stream: TextIO) -> TextIO:
    """Return a stream that takes text as it is: for who has escaped it, or writes data into a file."""
    return stream.exact if isinstance(stream, ShownOutput) else stream


class ClosedOutput(io.TextIOBase):
    """A text stream that takes nothing."""

    def write(self, text: str) -> int:
        """Refuse to write.

        Raises:
            OSError: always.
        """
        raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard output")


class DispensableOutput(io.TextIOBase):
    """A text stream that passes on what it can: progress that is not seen does not end a run."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the stream behind it."""
        return self._stream.encoding if self._stream is not None else "utf-8"

    def write(self, text: str) -> int:
        """Write, if that is possible."""
        if self._stream is not None:
            with suppress(OSError):
                self._stream.write(text)
                self._stream.flush()
        return len(text)

    def flush(self) -> None:
        """Do nothing: all has been passed on."""

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self._stream is not None and self._stream.isatty()

    def fileno(self) -> int:
        """Return the number of the stream's file.

        Raises:
            OSError: it is closed.
        """
        if self._stream is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard error")
        return self._stream.fileno()
