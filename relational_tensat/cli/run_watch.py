"""Progress, printed during a run."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from relational_tensat.explore import IterationReport
    from relational_tensat.extract.anytime import ExtractionEntry
    from relational_tensat.mugraph.fusion.own_kernel import RegionReport
    from relational_tensat.run.reports import RaceRound

#: Phases whose names do not say what is done.
_SAID = {"price": "price the graph", "fuse": "search kernels", "whole": "run both graphs whole"}
#: The solver reports more often than a person can read.
_SECONDS_BETWEEN_BOUNDS = 0.5
_SECONDS_BETWEEN_MEASUREMENTS = 2.0
_SECONDS_BETWEEN_REGIONS = 2.0


class ConsoleProgress:
    """Prints a line per iteration, and one whenever the solver's graph or bound is better."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._phase = ""
        self._last_bound = -math.inf
        self._last_measured = -math.inf
        self._last_region = -math.inf

    def phase(self, name: str) -> None:
        """Print the name of a phase when it begins."""
        if name not in ("load", self._phase):  # loading is too quick to be news
            self._phase = name
            self._console.print(f"{_SAID.get(name, name)} …", style="dim")

    def region(self, report: RegionReport) -> None:
        """Print now and then what became of a part of the model for which a kernel was sought."""
        now = time.monotonic()
        if report.place < report.total and now - self._last_region < _SECONDS_BETWEEN_REGIONS:
            return
        self._last_region = now
        if report.kernel_us is None:
            found = f"no kernel: {report.reason}" if report.reason else "a kernel"
        else:
            found = f"a kernel, {report.kernel_us:,.2f} µs instead of {report.operators_us:,.2f}"
        self._console.print(
            f"  part {report.place} of {report.total}, {len(report.operators)} operators to "
            f"{', '.join(report.outputs)}: {found}"
        )

    def iteration(self, report: IterationReport) -> None:
        """Print what an iteration of exploration did."""
        self._console.print(
            f"  iteration {report.iteration}: {report.e_nodes:,} e-nodes, "
            f"{report.e_classes:,} classes, {report.matches:,} matches, {report.seconds:.2f} s"
        )

    def extraction(self, incumbent_us: float, bound_us: float) -> None:
        """Print the cheapest graph so far and how cheap one could be."""
        now = time.monotonic()
        if now - self._last_bound < _SECONDS_BETWEEN_BOUNDS:
            return
        self._last_bound = now
        best = f"{incumbent_us:,.2f} µs" if math.isfinite(incumbent_us) else "none yet"
        bound = f"{bound_us:,.2f} µs" if 0 < bound_us < math.inf else "none yet"
        self._console.print(f"  best graph {best}, bound {bound}")

    def extracted(self, entry: ExtractionEntry) -> None:
        """Print what the cheapest graph so far costs."""
        proof = ", optimal for this e-graph" if entry.optimal else ""
        self._console.print(f"  best graph {entry.best_us:,.2f} µs{proof}, {entry.seconds:.2f} s")

    def raced(self, report: RaceRound) -> None:
        """Print who won a race."""
        final = report.final
        self._console.print(
            f"  race {report.round}: {report.graphs[report.winner].name} is {final.speedup:.3f}x as fast "
            f"as the original [{final.low:.3f}, {final.high:.3f}]"
        )

    def measuring(self, done: int, total: int) -> None:
        """Print how far measuring is: at once, now and then, and at the end."""
        now = time.monotonic()
        if 0 < done < total and now - self._last_measured < _SECONDS_BETWEEN_MEASUREMENTS:
            return
        self._last_measured = now
        self._console.print(f"  measured {done:,} of {total:,} configurations")
