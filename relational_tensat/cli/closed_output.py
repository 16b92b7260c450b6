"""Standard output that is closed: what is written to it is lost, and that is reported."""

from __future__ import annotations

import errno
import io
import os


class ClosedOutput(io.TextIOBase):
    """A text stream that takes nothing."""

    def write(self, text: str) -> int:
        """Refuse to write.

        Raises:
            OSError: always.
        """
        raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard output")
