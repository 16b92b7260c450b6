"""The phases of a run: announced as they begin, and timed under their names."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from relational_tensat.run.progress import Progress

PHASES = ("load", "price", "explore", "fuse", "extract", "verify", "whole", "write")


class Phases:
    """Reports phases to a run's progress, and adds up their time.

    Attributes:
        progress: every step is reported to it.
        seconds: wall seconds by phase.
    """

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self._started = time.perf_counter()

    @property
    def total_s(self) -> float:
        """Wall seconds since the run started."""
        return time.perf_counter() - self._started

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Announce a phase, once, and add what is inside to its time."""
        if not self.seconds[name]:
            self.progress.phase(name)
        start_s = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += time.perf_counter() - start_s

    def move(self, seconds: float, *, source: str, target: str) -> None:
        """Count time as a phase's that was spent inside another."""
        self.seconds[source] -= seconds
        self.seconds[target] += seconds
