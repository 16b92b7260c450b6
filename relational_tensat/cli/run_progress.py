"""Progress of extractions and runs: for people on a console, for programs as one JSON object a line."""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol, Self, TextIO

from rich.text import Text

from relational_tensat.run.progress import Progress, Silent

if TYPE_CHECKING:
    from rich.console import Console

    from relational_tensat.explore import IterationReport
    from relational_tensat.extract.kept_choice import ExtractionEntry
    from relational_tensat.mugraph.fusion.own_kernel import RegionReport
    from relational_tensat.run.reports import RaceRound

#: Phases whose names do not say what is done.
_SAID = {
    "bodies": "optimize bodies",
    "price": "price the graph",
    "fuse": "search kernels",
    "whole": "run both graphs whole",
}
#: The solver reports more often than a person can read.
_SECONDS_BETWEEN_BOUNDS = 0.5
_SECONDS_BETWEEN_MEASUREMENTS = 2.0
_SECONDS_BETWEEN_REGIONS = 2.0
#: A second: graphs are timed meanwhile, which a busy thread would disturb.
_REFRESHES = 2


class ExtractionEvents:
    """Writes one JSON object a line: seconds since it was made, cost and bound (null: none yet)."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._started = time.monotonic()
        self._last: tuple[float, float] | None = None

    def extraction(self, incumbent: float, bound: float) -> None:
        """Write an event if something moved."""
        if (incumbent, bound) == self._last:
            return
        self._last = (incumbent, bound)
        event = {
            "seconds": round(time.monotonic() - self._started, 3),
            "incumbent": incumbent if math.isfinite(incumbent) else None,
            "bound": bound if math.isfinite(bound) else None,
        }
        self._stream.write(json.dumps(event) + "\n")
        self._stream.flush()


class RunEvents:
    """Progress as events: ``phase``, ``region``, ``iteration``, ``incumbent``, ``bound``, and others.

    Every event has ``seconds`` since this was made, ``event``, and the ``phase`` and the ``iteration``
    in which it happened. An ``incumbent`` is a cheaper graph, a ``bound`` a better bound; both have the
    two of them in µs, as ``incumbent`` and ``bound`` (null: none yet).
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._started = time.monotonic()
        self._phase = ""
        self._iteration = 0
        self._last: tuple[float, float] | None = None

    def phase(self, name: str) -> None:
        """Write that a phase begins, unless it is the present one."""
        if name == self._phase:
            return
        self._phase = name
        self._last = None
        self._write("phase")

    def region(self, report: RegionReport) -> None:
        self._write("region", **asdict(report))

    def iteration(self, report: IterationReport) -> None:
        self._iteration = report.iteration
        self._last = None
        fields = asdict(report)
        self._write("iteration", iteration_seconds=round(fields.pop("seconds"), 3), **fields)

    def extraction(self, incumbent_us: float, bound_us: float) -> None:
        """Write a better graph or a better bound, if one of them moved."""
        if (incumbent_us, bound_us) == self._last:
            return
        is_better = self._last is None or incumbent_us != self._last[0]
        self._last = (incumbent_us, bound_us)
        self._write(
            "incumbent" if is_better else "bound",
            incumbent=incumbent_us if math.isfinite(incumbent_us) else None,
            bound=bound_us if math.isfinite(bound_us) else None,
        )

    def extracted(self, entry: ExtractionEntry) -> None:
        """Write what an extraction between iterations found; how long it took is ``extract_seconds``."""
        self._last = None
        fields = asdict(entry)
        self._write("extracted", extract_seconds=round(fields.pop("seconds"), 3), **fields)

    def raced(self, report: RaceRound) -> None:
        self._write("raced", **asdict(report))

    def measuring(self, done: int, total: int) -> None:
        self._write("measuring", done=done, total=total)

    def _write(self, event: str, **values: Any) -> None:
        line = {
            "seconds": round(time.monotonic() - self._started, 3),
            "event": event,
            "phase": self._phase,
            "iteration": self._iteration,
            **values,
        }
        self._stream.write(json.dumps(line, allow_nan=False) + "\n")
        self._stream.flush()


class ShownProgress(Progress, Protocol):
    """Progress that people see while it is entered."""

    def __enter__(self) -> Self:
        """Begin to show it."""

    def __exit__(self, *_: object) -> None:
        """Show it no longer."""


class BriefProgress(Silent):
    """Prints phases, races, and how far measuring is: few lines, for a pipe or a plain terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._phase = ""
        self._last_bound = -math.inf
        self._last_measured = -math.inf
        self._last_region = -math.inf

    def __enter__(self) -> Self:
        """Begin: lines are printed as things happen."""
        return self

    def __exit__(self, *_: object) -> None:
        """End."""

    def phase(self, name: str) -> None:
        if name not in ("load", self._phase):  # loading is too quick to be news
            self._phase = name
            self._console.print(f"{_SAID.get(name, name)} …", style="dim")

    def raced(self, report: RaceRound) -> None:
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


class ConsoleProgress(BriefProgress):
    """Prints a line per iteration, too, and one whenever the solver's graph or bound is better."""

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
        proof = ", optimal for this e-graph" if entry.optimal else ""
        self._console.print(f"  best graph {entry.best_us:,.2f} µs{proof}, {entry.seconds:.2f} s")


class LiveProgress:
    """Shows one line, which is written again and again: time, phase, best graph so far, race."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live  # few commands need it

        self._started = time.monotonic()
        self._phase = ""
        self._at = ""
        self._best_us = math.inf
        self._race = ""
        self._live = Live(
            console=console,
            get_renderable=self._line,
            refresh_per_second=_REFRESHES,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Self:
        """Begin to show the line."""
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the line away."""
        self._live.stop()

    def _line(self) -> Text:
        best = f"best {self._best_us:,.2f} µs" if math.isfinite(self._best_us) else ""
        doing = " ".join(filter(None, (_SAID.get(self._phase, self._phase), self._at)))
        parts = filter(None, (doing, best, self._race))
        seconds = f"{time.monotonic() - self._started:.1f} s"
        return Text("  ".join((seconds, *parts)), style="dim", no_wrap=True, overflow="ellipsis")

    def phase(self, name: str) -> None:
        if name != self._phase:
            self._phase, self._at = name, ""

    def region(self, report: RegionReport) -> None:
        self._at = f"(part {report.place} of {report.total})"

    def iteration(self, report: IterationReport) -> None:
        self._at = f"(iteration {report.iteration})"

    def extraction(self, incumbent_us: float, bound_us: float) -> None:
        self._best_us = min(self._best_us, incumbent_us)

    def extracted(self, entry: ExtractionEntry) -> None:
        self._best_us = min(self._best_us, entry.best_us)

    def raced(self, report: RaceRound) -> None:
        final = report.final
        self._race = f"timed: {final.speedup:.3f}x [{final.low:.3f}, {final.high:.3f}]"

    def measuring(self, done: int, total: int) -> None:
        self._at = f"(measured {done:,} of {total:,})" if done < total else ""


def shown_progress(console: Console, *, details: bool) -> ShownProgress:
    """Return progress for people: all lines, one live line on a terminal, or few lines elsewhere."""
    if details:
        return ConsoleProgress(console)
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveProgress(console)
    return BriefProgress(console)
