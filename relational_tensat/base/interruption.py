"""Ctrl-C during extraction: the first ends it with the best so far, a second ends the program.

An exception must not pass through HiGHS, which calls back into Python while it runs, so there a
Ctrl-C is only remembered, and HiGHS is stopped at its next question. Everywhere else in a search
it is raised at once: some steps on a large e-graph take longer than anyone waits.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """Whether Ctrl-C was pressed while something ran that has a best so far.

    Attributes:
        happened: it was pressed, or the caller's own code raised ``KeyboardInterrupt``.
        insisted: it was pressed again.
    """

    def __init__(self) -> None:
        self.happened = False
        self.insisted = False
        self._raises = False
        self._in_solver = False
        self._is_final = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Take Ctrl-C while the block runs, also within others that take it in another way.

        Signals reach only the main thread; in others this does nothing.

        Raises:
            KeyboardInterrupt: it was pressed twice.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous = signal.signal(signal.SIGINT, self._on_signal)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, previous)

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Raise what Ctrl-C means in the block; ``survive`` it outside.

        Raises:
            KeyboardInterrupt: it was pressed, perhaps before.
        """
        try:
            self._raises = True
            self.check()
            yield
        finally:
            self._raises = False

    def survive(self) -> None:
        """Note that a ``KeyboardInterrupt`` was caught, to go on with the best so far.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed twice.
        """
        if self.insisted:
            raise KeyboardInterrupt
        self.happened = True

    @contextmanager
    def solving(self) -> Iterator[None]:
        """Only remember Ctrl-C while HiGHS runs in the block.

        Raises:
            KeyboardInterrupt: it was pressed twice.
        """
        self._in_solver = True
        try:
            yield
        finally:
            self._in_solver = False
        if self.insisted:
            raise KeyboardInterrupt

    @contextmanager
    def final(self) -> Iterator[None]:
        """Let the first Ctrl-C end the program: the block has no best so far.

        Raises:
            KeyboardInterrupt: it was pressed.
        """
        self._is_final = True
        try:
            yield
        finally:
            self._is_final = False

    def check(self) -> None:
        """Go no further if Ctrl-C was pressed.

        Raises:
            KeyboardInterrupt: it was.
        """
        if self.happened:
            raise KeyboardInterrupt

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        again, self.happened = self.happened or self._is_final, True
        self.insisted |= again
        if not self._in_solver and (again or self._raises):
            raise KeyboardInterrupt
