"""Ctrl-C that waits until a row is written: DuckDB would drop the statement that it interrupts."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Any

from relational_tensat.base.signals import ctrl_c_taken


class Postponed:
    """Holds Ctrl-C back while its block runs, and lets it happen at the end.

    Signals reach only the main thread; in others this does nothing.
    """

    def __init__(self) -> None:
        self._frame: FrameType | None = None
        self._pressed = False
        self._taken = ctrl_c_taken(self._on_signal)
        self._previous: Any = None

    def __enter__(self) -> Postponed:
        self._previous = self._taken.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._taken.__exit__(None, None, None)
        if self._pressed and callable(self._previous):
            self._previous(signal.SIGINT, self._frame)

    def check(self) -> None:
        """Go no further if Ctrl-C was pressed: where the block waits for another process.

        Raises:
            KeyboardInterrupt: it was pressed.
        """
        if self._pressed:
            self._pressed = False
            raise KeyboardInterrupt

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        self._pressed, self._frame = True, frame
