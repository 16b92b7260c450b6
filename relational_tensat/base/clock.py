"""The one clock that limits go by: wall seconds, or, for measurements on a busy machine, CPU seconds."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

_counts_cpu = False


def now_s() -> float:
    """Return seconds, of which only differences mean anything."""
    return time.process_time() if _counts_cpu else time.monotonic()


def wall_limit_s(limit_s: float) -> float:
    """Return a limit for what has a wall clock of its own: infinite while CPU seconds count."""
    return math.inf if _counts_cpu else limit_s


@contextmanager
def counting_cpu_seconds() -> Iterator[None]:
    """Let all limits in the block be CPU seconds of this process, all threads together."""
    global _counts_cpu
    before, _counts_cpu = _counts_cpu, True
    try:
        yield
    finally:
        _counts_cpu = before
