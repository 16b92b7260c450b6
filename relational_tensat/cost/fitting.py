"""The fit behind a calibration: times as a launch plus the larger of two scaled parts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]

#: Sides of the max, and weights, converge long before.
_MOST_ROUNDS = 20
_MOST_REWEIGHTINGS = 50
#: Below this relative error all times weigh the same: 1 % is what measuring is good for.
_NOISE = 0.01


@dataclass(frozen=True, slots=True)
class Factors:
    """What is fitted: ``launch_us + max(compute · compute_us, memory · memory_us)``."""

    launch_us: float
    compute: float
    memory: float

    def time_us(self, compute_us: float, memory_us: float) -> float:
        """Return the microseconds of a kernel, given the roofline's two sides of it."""
        return self.launch_us + max(self.compute * compute_us, self.memory * memory_us)


def fit(sides_us: _Floats, times_us: _Floats) -> Factors:
    """Return the factors that minimize the sum of |estimate / time - 1|; see cost/calibration.py.

    A factor that no time depends on is the other one: both sides of the profile are off alike.

    Args:
        sides_us: shape (n, 2): the roofline's compute and memory time of each kernel.
        times_us: shape (n,): what was measured, positive.
    """
    bound = sides_us[:, 0] >= sides_us[:, 1]
    best, least = Factors(0.0, 1.0, 1.0), np.inf
    previous_sides: set[bytes] = set()
    for _ in range(_MOST_ROUNDS):
        if bound.tobytes() in previous_sides:
            break
        previous_sides.add(bound.tobytes())
        factors = _fit_sides(sides_us, times_us, bound)
        error = _error(factors, sides_us, times_us)
        if error < least:
            best, least = factors, error
        bound = factors.compute * sides_us[:, 0] >= factors.memory * sides_us[:, 1]
    return best


def _fit_sides(sides_us: _Floats, times_us: _Floats, bound: NDArray[np.bool_]) -> Factors:
    """Return the factors for kernels that are bound by arithmetic where ``bound``, else by memory."""
    columns = np.stack(
        [
            np.ones(len(times_us)),
            np.where(bound, sides_us[:, 0], 0.0),
            np.where(bound, 0.0, sides_us[:, 1]),
        ],
        axis=1,
    )
    launch, compute, memory = _least_absolute(columns / times_us[:, None])
    if not columns[:, 1].any():
        compute = memory
    if not columns[:, 2].any():
        memory = compute
    return Factors(float(launch), float(compute), float(memory))


def _least_absolute(rows: _Floats) -> _Floats:
    """Return x, not negative, with the least sum of |rows · x - 1|; 0 for columns of zeros.

    All choices of columns that are not 0 are tried: there are seven.
    """
    nonzero_columns = [k for k in range(rows.shape[1]) if rows[:, k].any()]
    best, least = np.zeros(rows.shape[1]), np.inf
    for count in range(1, len(nonzero_columns) + 1):
        for columns in combinations(nonzero_columns, count):
            x = np.zeros(rows.shape[1])
            x[list(columns)] = _reweighted(rows[:, columns])
            error = float(np.abs(rows @ x - 1).sum())
            if (x >= 0).all() and error < least:
                best, least = x, error
    return best


def _reweighted(rows: _Floats) -> _Floats:
    """Return x with the least sum of |rows · x - 1|, by reweighted least squares."""
    scale = np.abs(rows).max(axis=0)  # launches and flops differ by many orders
    scaled = rows / scale
    weights = np.ones(len(rows))
    x = np.zeros(rows.shape[1])
    for _ in range(_MOST_REWEIGHTINGS):
        weighted = scaled.T * weights
        # the normal equations, at most three; by least squares, since columns may be parallel
        solution = np.linalg.lstsq(weighted @ scaled, weighted.sum(axis=1), rcond=None)[0] / scale
        converged = np.allclose(solution, x, rtol=1e-9, atol=0.0)
        x = solution
        if converged:
            break
        weights = 1 / np.maximum(np.abs(rows @ x - 1), _NOISE)
    return x


def _error(factors: Factors, sides_us: _Floats, times_us: _Floats) -> float:
    larger = np.maximum(factors.compute * sides_us[:, 0], factors.memory * sides_us[:, 1])
    return float(np.abs((factors.launch_us + larger) / times_us - 1).sum())
