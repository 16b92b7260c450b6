"""The phases of a run: announced as they begin, and timed under their names."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from relational_tensat.run.progress import Progress

PHASES = ("load", "explore", "extract", "verify", "whole", "write")


class Phases:
    """Tells a run's progress of its phases, and adds up their time.

    Attributes:
        progress: is told of every step.
        seconds: wall seconds by phase.
    """

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.seconds = dict.fromkeys(PHASES, 0.0)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Announce a phase, once, and add what is inside to its time."""
        if not self.seconds[name]:
            self.progress.phase(name)
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += time.perf_counter() - begun

    def move(self, seconds: float, *, source: str, target: str) -> None:
        """Count time as a phase's that was spent inside another."""
        self.seconds[source] -= seconds
        self.seconds[target] += seconds
