"""Outputs that are closed or full: standard output is reported, standard error would not be seen."""

from __future__ import annotations

import errno
import io
import os
from contextlib import suppress
from typing import TextIO


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
