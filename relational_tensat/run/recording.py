"""What a run reports on its way, kept for the tables of its course."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from relational_tensat.egraph.database import Database
from relational_tensat.egraph.stopwatch import TimeSpent
from relational_tensat.run.progress import Progress

if TYPE_CHECKING:
    from relational_tensat.explore import IterationReport
    from relational_tensat.extract.anytime import ExtractionEntry
    from relational_tensat.mugraph.fusion.own_kernel import RegionReport
    from relational_tensat.run.race_report import RaceRound

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
        """Hand on that a phase begins."""
        self._phase, self._last = name, None
        self.progress.phase(name)

    def region(self, report: RegionReport) -> None:
        """Hand on what became of a part of the model."""
        self.progress.region(report)

    def iteration(self, report: IterationReport) -> None:
        """Hand on that an iteration of exploration has ended."""
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
        """Hand on that an extraction between two iterations has ended."""
        self._last = None
        self.progress.extracted(entry)

    def raced(self, report: RaceRound) -> None:
        """Hand on that graphs have raced."""
        self.progress.raced(report)

    def measuring(self, done: int, total: int) -> None:
        """Hand on how much has been measured."""
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
