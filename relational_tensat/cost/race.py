"""Graphs raced whole against the original: heats, and a test that ends when the order is clear.

A heat runs all graphs in turn, each as a runtime has just loaded it. A graph that was loaded first, or lies
elsewhere in memory, is 5 to 10 % slower for no other reason. So heats are what is repeated, and their
spread is the noise. A graph that is slower than another beyond the noise leaves the race (Birattari et al.
2002, "A racing algorithm for configuring metaheuristics"). The winner is then compared with the original in
heats of its own, since the fastest of many is partly the luckiest. The original takes part twice: the
difference is noise, too.

Within a heat, graphs are timed in rounds, each once in each, in any order.

Races of whole graphs correct the costs of single kernels by a factor for each kind of kernel. A race says
how many times as fast as the original a graph is. If kernels of kind k cost m_k in the graph, by the sums,
and o_k in the original, and truly f_k times as much, then the sum of f_k m_k is that of f_k o_k divided by
the speed-up. Each race and graph is one such equation, over the original's cost, so that its error is that
of the speed-up. The factors are least squares of all of them, each weighted by its error, and of f_k = 1
within ``SPREAD`` (Hoerl and Kennard 1970, "Ridge regression"). They say as much as the races do, and are 1
where those say nothing. A race compares graphs, so what all kernels have in common is not learnt.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np


def times_as_fast_as_first(
    rng: np.random.Generator, count: int, rounds: int, time_us: Callable[[int], float]
) -> list[float]:
    """Return how many times as fast as the first each graph is: the median over the rounds.

    Args:
        rng: draws the order in each round.
        count: of graphs.
        time_us: runs a graph, by its number, equally often each.
    """
    times_us = np.empty((rounds, count))
    for row in times_us:
        for number in rng.permutation(count).tolist():
            row[number] = time_us(number)
    ratios: list[float] = np.median(times_us[:, :1] / times_us, axis=0).tolist()
    return ratios


#: How far costs of a kind are thought to be off, as a fraction.
SPREAD = 0.15
#: A speed-up is known no better than that, as a fraction: how two runs of one graph differ.
LEAST_ERROR = 0.01
#: No kind is corrected by more.
MOST = 1.5
#: Less is no correction.
LEAST = 0.005


@dataclass(frozen=True, slots=True)
class RaceOutcome:
    """How fast a graph was against the original, and what both cost by sums of measured kernels.

    Attributes:
        model: the model that raced.
        before_us, after_us: of the original and the other, microseconds by kind of kernel, uncorrected.
        speedup: how many times as fast the other was.
        error: of the speed-up, as a fraction: a standard deviation.
    """

    model: str
    before_us: Mapping[str, float]
    after_us: Mapping[str, float]
    speedup: float
    error: float


@dataclass(frozen=True, slots=True)
class Corrections:
    """Factors by kind of kernel; kinds that are not in it are right.

    Attributes:
        races: how many outcomes they are from.
    """

    factors: Mapping[str, float]
    races: int

    def of(self, kind: str) -> float:
        """Return the factor of a kind."""
        return self.factors.get(kind, 1.0)

    def describe(self, kinds: Iterable[str]) -> str:
        """Return which of some kinds are corrected, and by how much, in a few words; "" if none is."""
        corrected = [
            f"{kind} {self.factors[kind]:.2f}" for kind in sorted(kinds) if kind in self.factors
        ]
        return ", ".join(corrected)


def corrections_of(outcomes: Sequence[RaceOutcome]) -> Corrections:
    """Return the factors that agree best with all outcomes; see the module."""
    kinds = sorted({kind for each in outcomes for kind in (*each.before_us, *each.after_us)})
    used = [each for each in outcomes if sum(each.before_us.values()) > 0]
    if not used:
        return Corrections({}, 0)
    rows = np.zeros((len(used), len(kinds)))
    errors = np.array([max(each.error, LEAST_ERROR) for each in used])
    for row, each in zip(rows, used, strict=True):
        total_us = sum(each.before_us.values())
        for column, kind in enumerate(kinds):
            before_us = each.before_us.get(kind, 0.0) / each.speedup
            row[column] = (each.after_us.get(kind, 0.0) - before_us) / total_us
    weighted = rows / errors[:, None]
    equations = np.vstack([weighted, np.eye(len(kinds)) / SPREAD])
    right = np.concatenate([-weighted.sum(axis=1), np.zeros(len(kinds))])
    off = np.linalg.lstsq(equations, right, rcond=None)[0]
    factors = np.clip(1.0 + off, 1 / MOST, MOST)
    by_kind = zip(kinds, factors.tolist(), strict=True)
    return Corrections({kind: f for kind, f in by_kind if abs(f - 1.0) >= LEAST}, len(used))


#: Numbers of graphs in; how many times as fast as the first of them each is, out.
TimingRound: TypeAlias = Callable[[Sequence[int]], Sequence[float]]

#: Raised whenever results of before no longer count: graphs are run, or written, in another way.
RACE_VERSION = 3
#: Fewer heats say nothing.
LEAST_HEATS = 5
#: With modelled costs and normal effort, a race takes so long at most, or so few heats have to fit into it.
SHORT_BUDGET_S = 10.0
#: Rounds of a heat, each graph once in each, all several times if the first is quick.
_HEAT_ROUNDS = 7
#: Fewer, if they would take longer: heats are what is repeated.
_MOST_HEAT_S = 0.6
#: More are never run: the winner's, and those before.
MOST_HEATS = 24
#: A graph that is not known to be slower than this counts as fast as the original.
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


def heat_rounds(round_s: float) -> int:
    """Return how many rounds a heat has, where one takes so many seconds."""
    return max(1, min(_HEAT_ROUNDS, int(_MOST_HEAT_S / max(round_s, 1e-9))))


def least_heats_s(heat: TimingRound, numbers: Sequence[int]) -> float:
    """Run a heat that counts for nothing: libraries are loaded, memory is taken.

    Returns:
        How many seconds as few heats take as say something.
    """
    start_s = time.perf_counter()
    heat(numbers)
    return LEAST_HEATS * (time.perf_counter() - start_s)


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


def race(
    heat: TimingRound,
    count: int,
    is_over: Callable[[float], bool],
    least_finding: int = LEAST_HEATS,
) -> RaceResult:
    """Race graphs against the original.

    Args:
        heat: runs graphs by their numbers; 0, the original, is asked for first and last.
        count: how many there are beside the original, at least one.
        is_over: whether so much of the time has passed, as a fraction.
        least_finding: the fewest heats in which the winner is found, however long one takes. Fewer are
            enough for graphs that differ little: the winner has heats of its own then.
    """
    logarithms: dict[int, list[float]] = {number: [] for number in range(1, count + 1)}
    noise: list[float] = []
    alive = list(logarithms)
    heats = 0
    while (
        len(alive) > 1 and heats < MOST_HEATS and (heats < least_finding or not is_over(_FINDING))
    ):
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
    heat: TimingRound,
    numbers: Sequence[int],
    logarithms: dict[int, list[float]],
    noise: list[float],
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
