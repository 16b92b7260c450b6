"""Clocks that move: a GPU's clock cannot be locked by its users, so it is watched.

A fixed product is timed before and after each window of samples. Where it took another time than it
mostly does, the clock was elsewhere, and what was timed in between does not count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

#: How far the reference may be from its median, as a fraction.
TOLERANCE = 0.02


def steady(
    references_us: Sequence[tuple[float, float]], tolerance: float = TOLERANCE
) -> list[bool]:
    """Return which windows count: both references lie within the tolerance of the median of all."""
    if not references_us:
        return []
    middle = float(np.median(references_us))
    return [
        all(abs(time_us - middle) <= tolerance * middle for time_us in window)
        for window in references_us
    ]
