"""How much longer one function takes than another: thread CPU time, interleaved, undisturbed.

A sample counts where the processor was undisturbed right before and right after (cost/cpu/quiet.py).
Where too few such moments come while patience lasts, samples count in which it was as disturbed before as
after, each divided by how much slower it was: right to some 20 %, where an uncorrected one would be up to
twice too long.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from relational_tensat.cost.cpu.quiet import Taken, Watch, is_quiet, take
from relational_tensat.cost.device import Sample

#: Runs before anything counts.
WARM_UP_RUNS = 3
#: Samples of each function; the 10th percentile is the third lowest of 30.
SAMPLES = 30
#: With so many undisturbed samples, the disturbed ones do not count.
_ENOUGH = 5
#: Out of patience, at most so many times the samples wanted are taken.
_MOST = 3


class Evictor:
    """Fills a core's L2 cache with something else, as the other operators of a graph do.

    Args:
        cache_bytes: of the L2 cache; twice as much is touched.
    """

    def __init__(self, cache_bytes: int) -> None:
        self._buffer = np.zeros(2 * cache_bytes // 4, np.float32)

    def __call__(self) -> None:
        """Read and write the buffer."""
        self._buffer += np.float32(1.0)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two functions whose difference is of interest, and what brings the caches into a state."""

    longer: Callable[[], None]
    shorter: Callable[[], None]
    before: Callable[[], None]


def difference(pair: Pair, copies: int, watch: Watch, patience_s: float) -> Sample:
    """Return how much longer one function takes than the other, divided by ``copies``.

    Each percentile is the difference of both functions' percentiles, and not negative.

    Args:
        patience_s: wall seconds to wait for undisturbed moments, if need be.
    """
    for _ in range(WARM_UP_RUNS):
        pair.longer()
        pair.shorter()
    longer: list[Taken] = []
    shorter: list[Taken] = []
    give_up = time.perf_counter() + patience_s
    while not (_is_enough(longer, give_up) and _is_enough(shorter, give_up)):
        for function, taken in ((pair.longer, longer), (pair.shorter, shorter)):
            is_quiet(watch, give_up)
            taken.append(take(function, partial(_warm, function, pair.before), watch))
    more, less = percentiles_us(longer, shorter)
    p10, median, p90 = np.maximum.accumulate(np.maximum(more - less, 0.0) / copies).tolist()
    return Sample(median, p10, p90, min(map(len, counted_us(longer, shorter))))


def _warm(function: Callable[[], None], before: Callable[[], None]) -> None:
    """Bring a function's data back, which others may have displaced; then the state that is wanted."""
    function()
    before()


def counted_us(*functions: Sequence[Taken]) -> list[list[float]]:
    """Return each function's samples that count: the undisturbed ones, or those that can be corrected.

    All are treated alike: corrected samples of one less undisturbed ones of another would be anything.
    """
    if all(map(has_undisturbed, functions)):
        return [[each.time_us for each in taken if each.is_undisturbed] for taken in functions]
    return [
        [each.corrected_us for each in taken if each.is_steady]
        or [each.corrected_us for each in taken]
        for taken in functions
    ]


def percentiles_us(*functions: Sequence[Taken]) -> list[NDArray[np.float64]]:
    """Return the 10th, 50th and 90th percentile of what counts of each function.

    A disturbance only ever makes a sample longer, but a correction errs to both sides: then the median
    stands in for the 10th percentile.
    """
    lowest = 10 if all(map(has_undisturbed, functions)) else 50
    return [np.percentile(counted, (lowest, 50, 90)) for counted in counted_us(*functions)]


def has_undisturbed(taken: Sequence[Taken]) -> bool:
    """Whether there are so many undisturbed samples that the others do not count."""
    return sum(each.is_undisturbed for each in taken) >= _ENOUGH


def _is_enough(taken: Sequence[Taken], give_up: float) -> bool:
    """Whether no more samples are needed: enough undisturbed ones, or, out of patience, any.

    Where nothing can be said of most samples, so great is the disturbance, a few must do.
    """
    if sum(each.is_undisturbed for each in taken) >= SAMPLES:
        return True
    if time.perf_counter() < give_up:
        return False
    return len(counted_us(taken)[0]) >= SAMPLES or len(taken) >= _MOST * SAMPLES
