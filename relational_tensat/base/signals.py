"""Ctrl-C is taken here, before that in ``ctrl_c``; the caller decides what it means (``base.watch``)."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeAlias

Handler: TypeAlias = Callable[[int, FrameType | None], None]


@contextmanager
def ctrl_c_taken(handler: Handler) -> Iterator[Any]:
    """Call a handler when Ctrl-C is pressed in the block, also within others that take it otherwise.

    Signals reach only the main thread; in others this does nothing.

    Yields:
        What took it before; None in other threads.
    """
    if threading.current_thread() is not threading.main_thread():
        yield None
        return
    previous = signal.signal(signal.SIGINT, handler)
    try:
        yield previous
    finally:
        signal.signal(signal.SIGINT, previous)


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
