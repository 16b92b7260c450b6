"""Node budgets of an exploration, and a guard that ends statements when a limit is reached."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from relational_tensat.egraph.database import Database


def multi_room(e_nodes: int, limit: int) -> int:
    """Return the most e-nodes that multi-pattern rules may grow an e-graph to in one iteration.

    Args:
        e_nodes: how many there are before the iteration.
        limit: the most there may be.
    """
    return (e_nodes + 3 * limit) // 4


def scarce_room(original: int, limit: int) -> int:
    """Return the same once that much has starved single-pattern rules: the bound of all iterations then.

    Single-pattern rules make several e-nodes of each that multi-pattern rules add (three to four on
    NasRNN and BERT with the shipped rules, next to none with TASO's).

    Args:
        original: e-nodes of the original graph.
        limit: the most there may be.
    """
    return max(limit // 4, (7 * original + limit) // 8)


class Guard:
    """Interrupts the database's running statement at the time limit or on Ctrl-C.

    Attributes:
        reason: ``time`` or ``interrupted`` once one of them has happened, else None.
    """

    def __init__(self, database: Database, seconds: float | None) -> None:
        self.reason: str | None = None
        self._pressed = False
        self._database = database
        self._deadline = None if seconds is None else time.monotonic() + seconds

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the clock and Ctrl-C while the block runs (signals only in the main thread).

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed twice.
        """
        timer = None
        if self._deadline is not None:
            remaining = max(self._deadline - time.monotonic(), 0.0)
            timer = threading.Timer(remaining, self._stop, ("time",))
            timer.daemon = True
            timer.start()
        in_main = threading.current_thread() is threading.main_thread()
        previous = signal.signal(signal.SIGINT, self._on_signal) if in_main else None
        try:
            yield
        finally:
            if in_main:
                signal.signal(signal.SIGINT, previous)
            if timer is not None:
                timer.cancel()
                timer.join()  # it may be interrupting just now

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        if self._pressed:
            raise KeyboardInterrupt
        self._pressed = True
        self._stop("interrupted")

    def _stop(self, reason: str) -> None:
        if self.reason is None:
            self.reason = reason
        self._database.interrupt()
