"""CPU and wall seconds of a block of code."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class Stopwatch:
    """CPU and wall seconds of a block of code; see ``stopwatch``."""

    cpu_s: float = 0.0
    wall_s: float = 0.0


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    """Measure the block; the seconds are there once it is left."""
    watch = Stopwatch()
    cpu_start_s, wall_start_s = time.process_time(), time.perf_counter()
    try:
        yield watch
    finally:
        watch.cpu_s = time.process_time() - cpu_start_s
        watch.wall_s = time.perf_counter() - wall_start_s
