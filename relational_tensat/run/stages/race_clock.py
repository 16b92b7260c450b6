"""The time that a race has."""

from __future__ import annotations

import time


class RaceClock:
    """Wall seconds from now on.

    Attributes:
        budget_s: how many.
    """

    def __init__(self, budget_s: float) -> None:
        self.budget_s = budget_s
        self._start_s = time.perf_counter()

    def is_over(self, share: float) -> bool:
        """Whether so much of the time has passed, as a fraction."""
        return self.passed_s > share * self.budget_s

    @property
    def passed_s(self) -> float:
        """What has passed of it, and beyond."""
        return time.perf_counter() - self._start_s

    @property
    def left_s(self) -> float:
        """What is left of it."""
        return max(0.0, self.budget_s - self.passed_s)
