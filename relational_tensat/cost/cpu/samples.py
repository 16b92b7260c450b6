"""Samples of how much longer one function takes: thread CPU time, interleaved, undisturbed.

A sample counts where the processor was undisturbed right before and right after (cost/cpu/quiet.py). Where
too few such moments come while patience lasts, rounds of both functions count. Each sample is divided by
how much slower the processor was: right to some 20 %, where an uncorrected one would be up to twice too
long. Patience buys little: six times of a convolution, a product and a sum differed by 0.4 to 1.0 %
(standard deviation) without any, in 0.06 to 0.12 s each, by 0.2 to 1.9 % with 1 s (AMD EPYC, load 5).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from relational_tensat.cost.cpu.quiet import Clock, QuietWatch, Taken, is_quiet, take
from relational_tensat.cost.device import TimingSample

#: Runs before anything counts.
WARM_UP_RUNS = 3
#: Samples of each function; the 10th percentile is the third lowest of 30.
SAMPLES = 30
#: With so many undisturbed samples, the disturbed ones do not count.
_ENOUGH = 5
#: With so many rounds of steady samples, the others do not count, and out of patience no more are taken.
_ENOUGH_ROUNDS = 10


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


#: One sample of each of two functions, one right after the other.
Round: TypeAlias = tuple[Taken, Taken]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two functions whose difference is of interest, and what brings the caches into a state.

    Attributes:
        clock: the clock of their times; None for the thread's CPU time.
    """

    longer: Callable[[], None]
    shorter: Callable[[], None]
    before: Callable[[], None]
    clock: Clock | None = None


def difference(pair: Pair, copies: int, watch: QuietWatch, patience_s: float) -> TimingSample:
    """Return how much longer one function takes than the other, divided by ``copies``; not negative.

    Args:
        patience_s: wall seconds to wait for undisturbed moments, if need be.
    """
    for _ in range(WARM_UP_RUNS):
        pair.longer()
        pair.shorter()
    rounds: list[Round] = []
    give_up = time.perf_counter() + patience_s

    def sample(function: Callable[[], None]) -> Taken:
        is_quiet(watch, give_up)
        return take(function, partial(warm, function, pair.before), watch, pair.clock)

    while not _is_enough(rounds, give_up):
        rounds.append((sample(pair.longer), sample(pair.shorter)))
    percentiles, count = differences_us(rounds)
    p10, median, p90 = np.maximum.accumulate(np.maximum(percentiles, 0.0) / copies).tolist()
    return TimingSample(median, p10, p90, count)


def differences_us(rounds: Sequence[Round]) -> tuple[NDArray[np.float64], int]:
    """Return 10th, 50th and 90th percentile of how much longer the first of two functions takes.

    Each is the difference of both functions' percentiles, where enough samples are undisturbed. Else
    the median round stands in for the 10th percentile, too: both of a round were disturbed alike, more or
    less, and a correction errs to both sides.

    Returns:
        Also how many samples or rounds count.
    """
    longer, shorter = zip(*rounds, strict=True)
    if _have_undisturbed(longer, shorter):
        more, less = percentiles_us(longer, shorter)
        return more - less, min(map(len, counted_us(longer, shorter)))
    steady_rounds = steady(rounds)
    valid_rounds = steady_rounds if len(steady_rounds) >= _ENOUGH_ROUNDS else rounds
    gaps_us = [more.corrected_us - less.corrected_us for more, less in valid_rounds]
    return np.percentile(gaps_us, (50, 50, 90)), len(gaps_us)


def warm(function: Callable[[], None], before: Callable[[], None]) -> None:
    """Bring back a function's data that others may have displaced; then the required state."""
    function()
    before()


def counted_us(*functions: Sequence[Taken]) -> list[list[float]]:
    """Return each function's samples that count: the undisturbed ones, or those that can be corrected.

    All are treated alike: corrected samples of one less undisturbed ones of another would be anything.
    """
    if _have_undisturbed(*functions):
        return [
            [sample.time_us for sample in samples if sample.is_undisturbed] for samples in functions
        ]
    return [
        [sample.corrected_us for sample in samples if sample.is_steady]
        or [sample.corrected_us for sample in samples]
        for samples in functions
    ]


def percentiles_us(*functions: Sequence[Taken]) -> list[NDArray[np.float64]]:
    """Return the 10th, 50th and 90th percentile of what counts of each function.

    A disturbance only ever makes a sample longer, but a correction errs to both sides: then the median
    stands in for the 10th percentile.
    """
    lowest = 10 if _have_undisturbed(*functions) else 50
    return [np.percentile(samples_us, (lowest, 50, 90)) for samples_us in counted_us(*functions)]


def _have_undisturbed(*functions: Sequence[Taken], least: int = _ENOUGH) -> bool:
    """Whether each function has so many undisturbed samples, by default as make the others not count."""
    return all(sum(sample.is_undisturbed for sample in samples) >= least for samples in functions)


def steady(rounds: Sequence[Round]) -> list[Round]:
    """Return the rounds in whose samples the processor was as disturbed after as before."""
    return [pair for pair in rounds if all(sample.is_steady for sample in pair)]


def _is_enough(rounds: Sequence[Round], give_up: float) -> bool:
    """Whether no more samples are needed: enough undisturbed ones, or, out of patience, any steady ones.

    Where few rounds are steady enough to conclude anything from, many must do.
    """
    if not rounds:
        return False
    if _have_undisturbed(*zip(*rounds, strict=True), least=SAMPLES):
        return True
    if time.perf_counter() < give_up:
        return False
    return len(steady(rounds)) >= _ENOUGH_ROUNDS or len(rounds) >= SAMPLES
