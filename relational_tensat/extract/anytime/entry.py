"""What one extraction of a run found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ExtractionEntry:
    """An extraction, and what the cheapest graph costs since; a row of the table ``extraction_log``.

    Attributes:
        iteration: after which of exploration.
        cost_us: of the graph that it found.
        best_us: of the cheapest graph that the run has found until then, the original included.
        bound_us: no graph of the e-graph of that time costs less (0: nothing is known).
        optimal: whether the graph found was proven to be the cheapest of that e-graph.
        seconds: wall seconds, making the problem included.
        final: whether it came after exploration, and not in between.
    """

    iteration: int
    cost_us: float
    best_us: float
    bound_us: float
    optimal: bool
    seconds: float
    final: bool


class ExtractionProgress(Protocol):
    """Is called as extractions proceed; a run's ``Progress`` is one."""

    def extraction(self, incumbent_us: float, bound_us: float) -> None:
        """The solver has a better graph or a better bound; both in µs, infinite while unknown."""

    def extracted(self, entry: ExtractionEntry) -> None:
        """An extraction between two iterations of exploration has ended."""
