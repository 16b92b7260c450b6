"""A run reports what it is doing: to its caller, by phases, and for the tables of its course."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from relational_tensat.egraph.database import Database
from relational_tensat.egraph.stopwatch import TimeSpent

if TYPE_CHECKING:
    from relational_tensat.explore import IterationReport
    from relational_tensat.extract.kept_choice import ExtractionEntry
    from relational_tensat.mugraph.fusion.own_kernel import RegionReport
    from relational_tensat.run.reports import RaceRound


class Progress(Protocol):
    """Every step of a run is reported to it; ``Silent`` ignores all of it."""

    def phase(self, name: str) -> None:
        """A phase begins: load, bodies, explore, fuse, extract, verify, whole or write."""
        return

    def region(self, report: RegionReport) -> None:
        """A kernel for a part of the model has been found, or none."""
        return

    def iteration(self, report: IterationReport) -> None:
        """An iteration of exploration has ended."""
        return

    def extraction(self, incumbent_us: float, bound_us: float) -> None:
        """The solver has a better graph or a better bound; both in µs, infinite while unknown."""
        return

    def extracted(self, entry: ExtractionEntry) -> None:
        """An extraction between two iterations of exploration has ended."""
        return

    def raced(self, report: RaceRound) -> None:
        """Graphs have raced whole; costs may be corrected now, and others race."""
        return

    def measuring(self, done: int, total: int) -> None:
        """So many of so many configurations have been measured; 0 before the first."""
        return


class Silent(Progress):
    """Progress that is not shown."""


@contextmanager
def shown(progress: Progress | None) -> Iterator[Progress]:
    """Give a progress if none is given: in a notebook, a bar that is done at the end of the block."""
    ipython = sys.modules.get("IPython")  # a notebook has imported it
    shell = None if ipython is None or progress is not None else ipython.get_ipython()
    bar = None
    if shell is not None:
        from relational_tensat.run.notebook_progress import notebook_bar

        bar = notebook_bar(shell, PHASES)
    try:
        yield progress or bar or Silent()
    finally:
        if bar is not None:
            bar.close()


PHASES = ("load", "bodies", "price", "explore", "fuse", "extract", "verify", "whole", "write")


class Phases:
    """Reports phases to a run's progress, and adds up their time.

    Attributes:
        progress: every step is reported to it.
        seconds: wall seconds by phase.
    """

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self._started = time.perf_counter()

    @property
    def total_s(self) -> float:
        """Wall seconds since the run started."""
        return time.perf_counter() - self._started

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Announce a phase, once, and add what is inside to its time."""
        if not self.seconds[name]:
            self.progress.phase(name)
        start_s = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += time.perf_counter() - start_s

    def move(self, seconds: float, *, source: str, target: str) -> None:
        """Count time as a phase's that was spent inside another."""
        self.seconds[source] -= seconds
        self.seconds[target] += seconds

    def skip(self, name: str, seconds: float) -> None:
        """Let seconds not count that have passed in a phase."""
        self.seconds[name] -= seconds
        self._started += seconds


#: A row of the table ``run_event``.
Event = tuple[float, str, int, float | None, float | None]


@dataclass
class Recording:
    """Progress that is handed on to another, and remembers when which graphs and bounds were found.

    Attributes:
        progress: the other.
        events: rows of the table ``run_event``.
    """

    progress: Progress
    events: list[Event] = field(default_factory=list)
    _started: float = field(default_factory=time.perf_counter)
    _phase: str = ""
    _iteration: int = 0
    _last: tuple[float, float] | None = None

    def phase(self, name: str) -> None:
        self._phase, self._last = name, None
        self.progress.phase(name)

    def region(self, report: RegionReport) -> None:
        self.progress.region(report)

    def iteration(self, report: IterationReport) -> None:
        self._iteration, self._last = report.iteration, None
        self.progress.iteration(report)

    def extraction(self, incumbent_us: float, bound_us: float) -> None:
        """Hand on a better graph or a better bound, and remember it if one of them moved."""
        if (incumbent_us, bound_us) != self._last:
            self._last = incumbent_us, bound_us
            seconds = time.perf_counter() - self._started
            cost, bound = _known(incumbent_us), _known(bound_us)
            self.events.append((seconds, self._phase, self._iteration, cost, bound))
        self.progress.extraction(incumbent_us, bound_us)

    def extracted(self, entry: ExtractionEntry) -> None:
        self._last = None
        self.progress.extracted(entry)

    def raced(self, report: RaceRound) -> None:
        self.progress.raced(report)

    def measuring(self, done: int, total: int) -> None:
        self.progress.measuring(done, total)


def _known(figure: float) -> float | None:
    return figure if math.isfinite(figure) else None


def write_course(database: Database, recording: Recording, spent: TimeSpent) -> None:
    """Write when the run found what and where its time went, instead of what is there."""
    database.script("run/forget_course")
    database.append("run_event", recording.events)
    rows = [
        (phase, name, entry.count, entry.seconds)
        for (phase, name), entry in spent.statements.items()
    ]
    rows += [
        (phase, "", 0, seconds - spent.database_seconds(phase))
        for phase, seconds in spent.phases.items()
    ]
    database.append("time_spent", rows)
