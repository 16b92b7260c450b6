"""What samples say: their middle, their spread, and how well the middle is known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relational_tensat.cost.device import TimingSample

#: Of normal samples, interquartile range over standard deviation; and how much wider than a mean's
#: the distribution of a median is.
_IQR_OF_NORMAL, _MEDIAN_OVER_MEAN = 1.349, 1.2533


def summarize(times_us: Sequence[float]) -> TimingSample:
    """Return median, 10th and 90th percentile."""
    p10, median, p90 = np.percentile(times_us, (10, 50, 90)).tolist()
    return TimingSample(median_us=median, p10_us=p10, p90_us=p90, samples=len(times_us))


def uncertainty(times_us: Sequence[float]) -> float:
    """Return the standard error of the median as a fraction of it, estimated from the quartiles."""
    q1, median, q3 = np.percentile(times_us, (25, 50, 75)).tolist()
    deviation = (q3 - q1) / _IQR_OF_NORMAL
    return float(_MEDIAN_OVER_MEAN * deviation / np.sqrt(len(times_us)) / max(median, 1e-12))


def noise_floor(first: Sequence[float], second: Sequence[float]) -> float:
    """Return how much two runs' medians differ, as a fraction: what is less is a tie."""
    if not first or not second:
        return 0.0
    a, b = float(np.median(first)), float(np.median(second))
    return abs(a - b) / max(min(a, b), 1e-12)
