"""Progress in a notebook: one bar with what is being done, where nobody asked for another progress."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relational_tensat.explore import IterationReport
    from relational_tensat.extract.kept_choice import ExtractionEntry
    from relational_tensat.mugraph.fusion.own_kernel import RegionReport
    from relational_tensat.run.reports import RaceRound

#: A notebook takes so many changes a second without trouble.
_SECONDS_BETWEEN = 0.2
#: Phases whose names do not say what is done.
_SAID = {"fuse": "search kernels", "price": "price the graph", "whole": "time whole graphs"}


def notebook_bar(shell: object, phases: Sequence[str]) -> NotebookBar | None:
    """Return a bar in the cell that runs; None where IPython's shell is no notebook's."""
    if not hasattr(shell, "kernel"):  # a terminal has none
        return None
    from IPython.display import HTML, display

    return NotebookBar(lambda html: _Handle(HTML, display(HTML(html), display_id=True)), phases)


class _Handle:
    def __init__(self, html: Callable[[str], Any], handle: Any) -> None:
        self._html = html
        self._handle = handle

    def update(self, text: str) -> None:
        if self._handle is not None:
            self._handle.update(self._html(text))


class NotebookBar:
    """A bar by phases, and beside it the best graph so far and the time."""

    def __init__(self, display: Callable[[str], Any], phases: Sequence[str]) -> None:
        """Show it.

        Args:
            display: shows HTML, and returns a handle whose ``update`` changes it.
            phases: that a run has, in order.
        """
        self._phases = phases
        self._started = time.monotonic()
        self._updated = self._started
        self._phase, self._place = "", 0
        self._best_us = math.inf
        self._handle = display(self._html("begin"))

    def phase(self, name: str) -> None:
        self._phase = name
        if name in self._phases:
            self._place = max(self._place, self._phases.index(name))
        self._show("", is_new=True)

    def region(self, report: RegionReport) -> None:
        """Show for how many parts of the model kernels were sought."""
        self._show(f"part {report.place} of {report.total}")

    def iteration(self, report: IterationReport) -> None:
        """Show how large the e-graph is."""
        self._show(f"iteration {report.iteration}, {report.e_nodes:,} e-nodes")

    def extraction(self, incumbent_us: float, bound_us: float) -> None:
        """Show the best graph so far."""
        self._best_us = min(self._best_us, incumbent_us)
        self._show("")

    def extracted(self, entry: ExtractionEntry) -> None:
        self._best_us = min(self._best_us, entry.best_us)
        self._show("")

    def raced(self, report: RaceRound) -> None:
        """Show how fast the fastest graph of a race is."""
        self._show(f"race {report.round}: {report.final.speedup:.3f} times as fast", is_new=True)

    def measuring(self, done: int, total: int) -> None:
        self._show(f"measured {done:,} of {total:,}", is_new=done in (0, total))

    def close(self) -> None:
        """Show that the run has ended."""
        self._handle.update(
            f"<small>relational_tensat: ended after {self._seconds():.1f} s</small>"
        )

    def _seconds(self) -> float:
        return time.monotonic() - self._started

    def _show(self, text: str, *, is_new: bool = False) -> None:
        now = time.monotonic()
        if is_new or now - self._updated >= _SECONDS_BETWEEN:
            self._updated = now
            self._handle.update(self._html(text))

    def _html(self, text: str) -> str:
        best = f"best graph {self._best_us:,.2f} µs" if math.isfinite(self._best_us) else ""
        parts = [_SAID.get(self._phase, self._phase), text, best, f"{self._seconds():.0f} s"]
        said = escape(", ".join(filter(None, parts)))
        bar = f'<progress value="{self._place}" max="{len(self._phases)}"></progress>'
        return f"{bar} <small>{said}</small>"
