"""Clocks that move: a GPU's clock cannot be locked by its users, so it is watched.

A fixed product is timed before and after each window of samples. Where it took another time than it
mostly does, the clock was elsewhere, and what was timed in between does not count.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

#: How far the reference may be from its median, as a fraction.
TOLERANCE = 0.02
#: How many times of the reference are remembered: some ten kernels' worth of them.
_REMEMBERED = 128
#: How many are taken before anything is timed.
_FIRST = 64


class Clock:
    """What the fixed product took lately, whatever was timed in between.

    Kernels that are timed one after the other share a clock: their times can be compared because all
    were taken while the product took the same. A clock that has moved for good is the usual one
    once it was seen in half of what is remembered.
    """

    def __init__(self) -> None:
        self._times_us: deque[float] = deque(maxlen=_REMEMBERED)

    def learn(self, reference_us: Callable[[], float]) -> None:
        """Time the fixed product often enough to know what it usually takes."""
        self.remember(*(reference_us() for _ in range(_FIRST)))

    def remember(self, *times_us: float) -> None:
        """Add times of the fixed product."""
        self._times_us.extend(times_us)

    @property
    def usual_us(self) -> float:
        """The median of what is remembered; 0.0 before anything is."""
        return float(np.median(self._times_us)) if self._times_us else 0.0


def steady(
    references_us: Sequence[tuple[float, float]], usual_us: float, tolerance: float = TOLERANCE
) -> list[bool]:
    """Return which windows count: both references lie within the tolerance of the usual time."""
    return [
        all(abs(time_us - usual_us) <= tolerance * usual_us for time_us in window)
        for window in references_us
    ]
