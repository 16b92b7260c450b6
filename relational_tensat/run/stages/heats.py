"""A race as a part of its own: its runner gets graphs and seconds, and says which graph is the fastest.

It needs no e-graph. So a quiet core may compute it while others search (``base.runner.undisturbed``).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from relational_tensat.cost import Unmeasurable
from relational_tensat.cost.race import (
    LEAST_HEATS,
    SHORT_BUDGET_S,
    RaceResult,
    TimingRound,
    least_heats_s,
    race,
)
from relational_tensat.run.end_to_end import RaceClock, TimedTask

#: The share of a race's time for the first heats, which all graphs are in.
_FIRST_HEATS = 0.5
#: The graphs of each of the last heats: the original twice, and the winner.
_LAST_HEAT = (0, 1, 0)
IN_LAST_HEATS = len(_LAST_HEAT)
#: The share of the time that a thread runs on an idle machine.
_IDLE = 0.9


class NotRacedError(Exception):
    """A heat cannot be run; says why."""


class TooSlowError(NotRacedError):
    """Too few heats fit into ``SHORT_BUDGET_S``.

    Args:
        least_s: how long as few take as say something.
        cpu_s: their CPU time.
    """

    def __init__(self, least_s: float, cpu_s: float) -> None:
        super().__init__(too_slow(least_s))
        self._least_s, self._cpu_s = least_s, cpu_s

    def idle_s(self, threads: int) -> float:
        """Return how long they take at least on an idle machine: as long as here, if this one is idle."""
        cpu_s = self._cpu_s / threads
        return self._least_s if cpu_s > _IDLE * self._least_s else cpu_s


@dataclass(frozen=True, slots=True)
class Heats:
    """What races.

    Attributes:
        budget_s, passed_s: wall seconds of the race, and those that are over.
    """

    timed: TimedTask
    budget_s: float
    passed_s: float


@dataclass(frozen=True, slots=True)
class RaceTask:
    """A race.

    Attributes:
        least_s: how long as few heats take as say something; None if that is not known.
        at_least: so many graphs race beside the original, however short the time.
    """

    heats: Heats
    least_s: float | None
    at_least: int


def run_race(task: RaceTask) -> RaceResult:
    """Race graphs, the first ones, as many as there is time for.

    Raises:
        NotRacedError: the device cannot run one.
        OtherMachineError: it is another one than where they were found.
    """
    heats, least_s = task.heats, task.least_s
    clock = RaceClock(heats.budget_s, heats.passed_s)
    heat = _round_of(heats)
    if least_s is None:
        least_s = least_heats_s(heat, _LAST_HEAT)
    fitting = int(_FIRST_HEATS * heats.budget_s / (least_s / IN_LAST_HEATS)) - 2
    number = min(max(task.at_least, fitting), len(heats.timed.graphs) - 1)
    return race(heat, number, clock.is_over)


def first_heats_s(heats: Heats) -> float:
    """Return how long as few heats take as say something, from one that counts for nothing.

    Raises:
        TooSlowError: too few fit into ``SHORT_BUDGET_S``.
        NotRacedError: the device cannot run a graph.
        OtherMachineError: as ``run_race``.
    """
    heat = _round_of(heats)
    least_s, cpu_s = _least_and_cpu_s(heat)
    if least_s > SHORT_BUDGET_S > least_s / LEAST_HEATS:
        least_s, cpu_s = _least_and_cpu_s(heat)
    if least_s > SHORT_BUDGET_S:
        raise TooSlowError(least_s, cpu_s)
    return least_s


def _least_and_cpu_s(heat: TimingRound) -> tuple[float, float]:
    """Return how long as few heats take as say something, and their CPU time."""
    start_s = time.process_time()
    least_s = least_heats_s(heat, _LAST_HEAT)
    return least_s, LEAST_HEATS * (time.process_time() - start_s)


def too_slow(least_s: float) -> str:
    """Return that a race would take too long."""
    return f"a race would take at least {least_s:.0f} s: --effort high or --budget races it"


def _round_of(heats: Heats) -> TimingRound:
    """Return what runs heats of graphs."""
    task, drawn, seeds = heats.timed, heats.timed.drawn(), count(heats.timed.seed)
    task.device.make_ready(drawn)

    def heat(numbers: Sequence[int]) -> Sequence[float]:
        graphs = [drawn[number] for number in numbers]
        ratios = task.device.heat(graphs, task.inputs, next(seeds))
        if isinstance(ratios, Unmeasurable):
            raise NotRacedError(ratios.reason)
        return ratios

    return heat
