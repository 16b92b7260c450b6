"""Extraction and runs as streams of events, one JSON object a line, each with its time."""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from relational_tensat.explore import IterationReport
    from relational_tensat.extract.anytime import ExtractionEntry
    from relational_tensat.mugraph.fusion.own_kernel import RegionReport
    from relational_tensat.run.reports import RaceRound


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
        """Write what became of a part of the model for which a kernel was sought."""
        self._write("region", **asdict(report))

    def iteration(self, report: IterationReport) -> None:
        """Write what an iteration of exploration did."""
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
        """Write who raced, and who won."""
        self._write("raced", **asdict(report))

    def measuring(self, done: int, total: int) -> None:
        """Write how many configurations have been measured."""
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
