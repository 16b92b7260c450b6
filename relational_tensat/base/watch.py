"""Ctrl-C, and deadlines by one clock (``base.deadline``): a ``Watch`` for a run, parts of it for steps.

The first Ctrl-C ends a step with the best so far, a second ends the program. HiGHS calls back into Python
while it runs, and no exception may pass through it. So a Ctrl-C is only remembered there, and HiGHS is
stopped at its next question. Everywhere else in a search it is raised at once: some steps on a large
e-graph take longer than anyone waits. In exploration it interrupts the database's statement (``Guard``).

Ctrl-C is taken at the end of this file, before that in ``ctrl_c``.
"""

from __future__ import annotations

import math
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any, TypeAlias

from relational_tensat.base.deadline import OutOfTimeError, now_s

#: Asked often in a long step; True ends it with the best so far.
ShouldStop = Callable[[], bool]

#: A guard looks at the clock again after so many seconds at the least.
_LEAST_WAIT_S = 0.001


@dataclass(slots=True)
class _CtrlC:
    """The key presses so far, and the meaning of the next one; a watch and all its parts share it."""

    happened: bool = False
    insisted: bool = False
    raises: bool = False
    in_solver: bool = False
    is_final: bool = False


class Watch:
    """When something that has a best so far is to end."""

    def __init__(self, limit_s: float = math.inf, should_stop: ShouldStop | None = None) -> None:
        """Begin now.

        Args:
            limit_s: wall seconds until it is over.
            should_stop: asked with the time; True ends it before that.
        """
        self._deadline = now_s() + limit_s
        self._should_stop = should_stop
        self._ctrl_c = _CtrlC()

    @property
    def happened(self) -> bool:
        """Whether Ctrl-C was pressed, or the caller's own code raised ``KeyboardInterrupt``."""
        return self._ctrl_c.happened

    @property
    def insisted(self) -> bool:
        """Whether it was pressed again."""
        return self._ctrl_c.insisted

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline, not negative."""
        return max(0.0, self._deadline - now_s())

    @property
    def wants_stop(self) -> bool:
        """Whether a stop was requested, at any time left."""
        return self.happened or (self._should_stop is not None and self._should_stop())

    @property
    def is_over(self) -> bool:
        """Whether the time is over, or a stop was requested; in one piece, as it is asked very often."""
        if now_s() >= self._deadline or self._ctrl_c.happened:
            return True
        return self._should_stop is not None and self._should_stop()

    def check_time(self) -> None:
        """Raise if it is over.

        Raises:
            OutOfTimeError: the time is, or someone wants to stop.
        """
        if self.is_over:
            raise OutOfTimeError("the time for this step of extraction is over")

    def within(self, limit_s: float, should_stop: ShouldStop | None = None) -> Watch:
        """Return the watch of a step: it is over after so many seconds, or when this one is.

        Both share Ctrl-C.
        """
        step = Watch(min(limit_s, self.seconds_left), should_stop or self._should_stop)
        if should_stop is not None and self._should_stop is not None:
            outer = self._should_stop
            step._should_stop = lambda: should_stop() or outer()
        step._ctrl_c = self._ctrl_c
        return step

    def share(self, fraction: float) -> Watch:
        """Return the watch of a step that may take this fraction of the time that is left."""
        return self.within(fraction * self.seconds_left)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Take Ctrl-C while the block runs, also within others that take it in another way.

        Raises:
            KeyboardInterrupt: it was pressed twice.
        """
        with ctrl_c_taken(self._on_signal):
            yield

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Raise what Ctrl-C means in the block; ``survive`` it outside.

        Raises:
            KeyboardInterrupt: it was pressed, perhaps before.
        """
        try:
            self._ctrl_c.raises = True
            self.check()
            yield
        finally:
            self._ctrl_c.raises = False

    def survive(self) -> None:
        """Note that a ``KeyboardInterrupt`` was caught, to continue with the best so far.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed twice.
        """
        if self.insisted:
            raise KeyboardInterrupt
        self.remember()

    def remember(self) -> None:
        """Note that a ``KeyboardInterrupt`` was caught where none may be raised."""
        self._ctrl_c.happened = True

    @contextmanager
    def solving(self) -> Iterator[None]:
        """Only remember Ctrl-C while HiGHS runs in the block.

        Raises:
            KeyboardInterrupt: it was pressed twice.
        """
        self._ctrl_c.in_solver = True
        try:
            yield
        finally:
            self._ctrl_c.in_solver = False
        if self.insisted:
            raise KeyboardInterrupt

    @contextmanager
    def final(self) -> Iterator[None]:
        """Let the first Ctrl-C end the program: the block has no best so far.

        Raises:
            KeyboardInterrupt: it was pressed.
        """
        self._ctrl_c.is_final = True
        try:
            yield
        finally:
            self._ctrl_c.is_final = False

    def check(self) -> None:
        """Raise if Ctrl-C was pressed.

        Raises:
            KeyboardInterrupt: it was.
        """
        if self.happened:
            raise KeyboardInterrupt

    def guard(self, stop: Callable[[], None], limit_s: float | None) -> Guard:
        """Return a guard of statements, which a limit or Ctrl-C ends without ending this watch."""
        return Guard(stop, min(math.inf if limit_s is None else limit_s, self.seconds_left))

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        state = self._ctrl_c
        again, state.happened = state.happened or state.is_final, True
        state.insisted |= again
        if not state.in_solver and (again or state.raises):
            raise KeyboardInterrupt


class Guard:
    """Stops what runs in its block at a time limit or on Ctrl-C, and remembers why.

    Attributes:
        reason: ``time`` (or what ``end_at`` says) or ``interrupted`` once one of them has happened, else
            None.
        at_limit: the reason at the limit.
    """

    def __init__(self, stop: Callable[[], None], limit_s: float = math.inf) -> None:
        """Begin now.

        Args:
            stop: interrupts what runs; called from a thread of its own at the limit.
        """
        self.reason: str | None = None
        self._pressed = False
        self._interrupt = stop
        self._defers = False
        self._limit = self._deadline = now_s() + limit_s
        self.at_limit = "time"
        self._moved = threading.Event()

    @property
    def seconds_left(self) -> float:
        """Seconds until the limit, not negative."""
        return max(0.0, self._deadline - now_s())

    def end_at(self, moment_s: float, reason: str) -> None:
        """Stop at a moment of ``now_s`` unless the limit comes first; called again, it moves the moment."""
        self._deadline, self.at_limit = min(
            (moment_s, reason), (self._limit, "time"), key=lambda end: end[0]
        )
        self._moved.set()

    @contextmanager
    def deferring(self) -> Iterator[None]:
        """Stop nothing in the block: the code there asks for ``reason`` between its steps."""
        self._defers = True
        try:
            yield
        finally:
            self._defers = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the clock and Ctrl-C while the block runs.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed twice.
        """
        ended = threading.Event()
        timer = threading.Thread(target=self._stop_in_time, args=(ended,), daemon=True)
        if self._limit < math.inf:
            timer.start()
        try:
            with ctrl_c_taken(self._on_signal):
                yield
        finally:
            ended.set()
            self._moved.set()
            if timer.ident is not None:
                timer.join()  # it may be interrupting just now

    def _stop_in_time(self, ended: threading.Event) -> None:
        """Wait for the limit, by the clock that limits go by: of CPU seconds fewer pass than of waiting."""
        while (left_s := self._deadline - now_s()) > 0 and not ended.is_set():
            self._moved.wait(max(left_s, _LEAST_WAIT_S))
            self._moved.clear()
        if not ended.is_set():
            self._stop(self.at_limit)

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        if self._pressed:
            raise KeyboardInterrupt
        self._pressed = True
        self._stop("interrupted")

    def _stop(self, reason: str) -> None:
        if self.reason is None:
            self.reason = reason
        if not self._defers:
            self._interrupt()


Handler: TypeAlias = Callable[[int, FrameType | None], None]


@contextmanager
def ctrl_c_taken(handler: Handler) -> Iterator[Any]:
    """Call a handler when Ctrl-C is pressed in the block, also within others that take it otherwise.

    Signals reach only the main thread; in others this does nothing.

    Yields:
        The previous handler; None in other threads.
    """
    if threading.current_thread() is not threading.main_thread():
        yield None
        return
    previous = signal.signal(signal.SIGINT, handler)
    try:
        yield previous
    finally:
        signal.signal(signal.SIGINT, previous)


class DeferredInterrupt:
    """Holds Ctrl-C back while its block runs, and lets it happen at the end.

    Signals reach only the main thread; in others this does nothing.
    """

    def __init__(self) -> None:
        self._frame: FrameType | None = None
        self._pressed = False
        self._taken = ctrl_c_taken(self._on_signal)
        self._previous: Any = None

    def __enter__(self) -> DeferredInterrupt:
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


def is_ctrl_c_ignored() -> bool:
    """Whether the process that began this one wants Ctrl-C to do nothing, as shells do for jobs."""
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def is_importing(frame: FrameType | None) -> bool:
    """Whether a module is being imported: Python may lose an exception that is raised there."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


@contextmanager
def passing_on(number: int, process: int) -> Iterator[None]:
    """Give a signal that this process gets to another one while the block runs."""
    previous = signal.signal(number, lambda *_: os.kill(process, number))
    try:
        yield
    finally:
        signal.signal(number, previous)


def ignore_ctrl_c() -> None:
    """Leave Ctrl-C to the process that began this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
