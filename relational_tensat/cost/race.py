"""Graphs raced whole against the original: heats, and a test that ends when the order is clear.

A heat runs all graphs in turn, each as a runtime has just loaded it: what was loaded first, or lies
elsewhere in memory, is 5 to 10 % slower, whatever it computes. So heats are what is repeated, and their
spread is the noise. A graph that is slower than another beyond the noise leaves the race (Birattari et al.
2002, "A racing algorithm for configuring metaheuristics"); the winner is then compared with the original in
heats of its own, since the fastest of many is partly the luckiest. The original takes part twice: the
difference is noise, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

#: Numbers of graphs in; how many times as fast as the first of them each is, out.
Heat: TypeAlias = Callable[[Sequence[int]], Sequence[float]]

#: Raised whenever results of before no longer count: graphs are run, or written, in another way.
RACE_VERSION = 2
#: Fewer heats say nothing.
LEAST_HEATS = 5
#: More are never run: the winner's, and those before.
MOST_HEATS = 24
#: What is not known to be slower than this is as fast as the original.
TIE = 0.98
#: Standard deviations on either side of the mean in an interval of 99 %.
_DEVIATIONS = 2.58
#: Share of the time in which the winner is found; the rest is for the winner alone.
_FINDING = 0.6
#: Student's t, 99.5 %, by degrees of freedom from 1 on: intervals of 99 %, for they are looked at often.
_T = (
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055,
    3.012, 2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Standing:
    """How many times as fast as the original a graph is.

    Attributes:
        speedup: the geometric mean over the heats.
        low, high: its interval of 99 %.
        heats: that it was in.
    """

    speedup: float
    low: float
    high: float
    heats: int

    @classmethod
    def of(cls, logarithms: Sequence[float]) -> Standing:
        """Return what heats say, from the logarithms of their ratios."""
        mean, half = mean_and_half_width(logarithms)
        return cls(math.exp(mean), math.exp(mean - half), math.exp(mean + half), len(logarithms))

    @property
    def error(self) -> float:
        """The standard deviation of the speed-up, as a fraction; infinite where one heat was run."""
        if math.isinf(self.high):
            return math.inf
        return math.log(self.high / self.low) / 2 / _DEVIATIONS

    @property
    def is_faster(self) -> bool:
        """Whether it is faster beyond the noise."""
        return self.low > 1.0

    @property
    def is_as_fast(self) -> bool:
        """Whether it is known not to be slower, or by less than matters."""
        return self.low > TIE

    @property
    def is_clear(self) -> bool:
        """Whether more heats would change nothing: faster, slower, or known to be neither."""
        return self.is_faster or self.high < 1.0 or (self.is_as_fast and self.high < 1 / TIE)


@dataclass(frozen=True, slots=True)
class RaceResult:
    """A race's end.

    Attributes:
        standings: per graph but the original, in their order: over the heats that it was in.
        winner: the number of the fastest of them, 1 for the first.
        final: the winner's standing in heats of its own.
        noise: the original's standing against itself, in all heats.
    """

    standings: tuple[Standing, ...]
    winner: int
    final: Standing
    noise: Standing

    @property
    def is_won(self) -> bool:
        """Whether the winner may take the original's place."""
        return self.final.is_as_fast


def race(heat: Heat, count: int, is_over: Callable[[float], bool]) -> RaceResult:
    """Race graphs against the original.

    Args:
        heat: runs graphs by their numbers; 0, the original, is asked for first and last.
        count: how many there are beside the original, at least one.
        is_over: whether so much of the time has passed, as a fraction.
    """
    logarithms: dict[int, list[float]] = {number: [] for number in range(1, count + 1)}
    noise: list[float] = []
    alive = list(logarithms)
    heats = 0
    while len(alive) > 1 and heats < MOST_HEATS and (heats < LEAST_HEATS or not is_over(_FINDING)):
        _run(heat, alive, logarithms, noise)
        heats += 1
        if heats >= LEAST_HEATS:
            alive = _contenders(alive, logarithms)
    winner = max(alive, key=lambda number: sum(logarithms[number]))
    final: dict[int, list[float]] = {winner: []}
    while len(final[winner]) < MOST_HEATS:
        if len(final[winner]) >= LEAST_HEATS and (
            is_over(1.0) or Standing.of(final[winner]).is_clear
        ):
            break
        _run(heat, [winner], final, noise)
    standings = tuple(Standing.of(own or final[winner]) for own in logarithms.values())
    return RaceResult(standings, winner, Standing.of(final[winner]), Standing.of(noise))


def mean_and_half_width(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean, and how far the ends of its interval of 99 % are from it."""
    if len(values) < 2:
        return float(np.mean(values)), math.inf
    t = _T[min(len(values) - 1, len(_T)) - 1]
    return float(np.mean(values)), t * float(np.std(values, ddof=1)) / math.sqrt(len(values))


def _run(
    heat: Heat, numbers: Sequence[int], logarithms: dict[int, list[float]], noise: list[float]
) -> None:
    *ratios, again = heat([0, *numbers, 0])[1:]
    for number, ratio in zip(numbers, ratios, strict=True):
        logarithms[number].append(math.log(ratio))
    noise.append(math.log(again))


def _contenders(alive: Sequence[int], logarithms: dict[int, list[float]]) -> list[int]:
    """Return the graphs that are not slower than the best so far beyond the noise, heat by heat."""
    best = max(alive, key=lambda number: sum(logarithms[number]))
    contenders = []
    for number in alive:
        pairs = zip(logarithms[best], logarithms[number], strict=True)
        mean, half = mean_and_half_width([first - second for first, second in pairs])
        if number == best or mean - half <= 0:
            contenders.append(number)
    return contenders
