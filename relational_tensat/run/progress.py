"""How a run reports to its caller what it is doing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from relational_tensat.explore import IterationReport
    from relational_tensat.extract.anytime import ExtractionEntry
    from relational_tensat.mugraph.fusion.own_kernel import RegionReport
    from relational_tensat.run.race_report import RaceRound


class Progress(Protocol):
    """Every step of a run is reported to it; ``Silent`` ignores all of it."""

    def phase(self, name: str) -> None:
        """A phase begins: load, explore, fuse, extract, verify, whole or write."""

    def region(self, report: RegionReport) -> None:
        """A kernel for a part of the model has been found, or none."""

    def iteration(self, report: IterationReport) -> None:
        """An iteration of exploration has ended."""

    def extraction(self, incumbent_us: float, bound_us: float) -> None:
        """The solver has a better graph or a better bound; both in µs, infinite while unknown."""

    def extracted(self, entry: ExtractionEntry) -> None:
        """An extraction between two iterations of exploration has ended."""

    def raced(self, report: RaceRound) -> None:
        """Graphs have raced whole; costs may be corrected now, and others race."""

    def measuring(self, done: int, total: int) -> None:
        """So many of so many configurations have been measured; 0 before the first."""


class Silent:
    """Progress that is not shown."""

    def phase(self, name: str) -> None:
        """Ignore it."""

    def region(self, report: RegionReport) -> None:
        """Ignore it."""

    def iteration(self, report: IterationReport) -> None:
        """Ignore it."""

    def extraction(self, incumbent_us: float, bound_us: float) -> None:
        """Ignore it."""

    def extracted(self, entry: ExtractionEntry) -> None:
        """Ignore it."""

    def raced(self, report: RaceRound) -> None:
        """Ignore it."""

    def measuring(self, done: int, total: int) -> None:
        """Ignore it."""
