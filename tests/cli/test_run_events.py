"""A run as events: one JSON object a line."""

from __future__ import annotations

import io
import json
import math
from typing import Any

from relational_tensat.cli.run_progress import RunEvents
from relational_tensat.explore import IterationReport
from relational_tensat.extract.kept_choice import ExtractionEntry


def written(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_events_say_when_and_where_they_happened() -> None:
    stream = io.StringIO()
    events = RunEvents(stream)
    events.phase("explore")
    events.phase("explore")
    events.iteration(IterationReport(1, 20, 15, 4, 2, 0, 30, 0.5))
    events.extraction(40.0, -math.inf)
    events.extraction(40.0, -math.inf)
    events.extraction(40.0, 10.0)
    events.extraction(30.0, 10.0)
    events.extracted(ExtractionEntry(1, 30.0, 30.0, 10.0, False, 0.25, False))
    events.measuring(1, 2)
    events.phase("extract")
    events.extraction(30.0, 10.0)
    lines = written(stream)
    assert [line["event"] for line in lines] == [
        "phase", "iteration", "incumbent", "bound", "incumbent", "extracted", "measuring",
        "phase", "incumbent",
    ]  # fmt: skip
    assert [line["phase"] for line in lines] == ["explore"] * 7 + ["extract"] * 2
    assert [line["iteration"] for line in lines] == [0] + [1] * 8
    seconds = [line["seconds"] for line in lines]
    assert seconds == sorted(seconds)
    assert lines[1]["e_nodes"] == 20
    assert lines[1]["iteration_seconds"] == 0.5
    assert (lines[2]["incumbent"], lines[2]["bound"]) == (40.0, None)
    assert (lines[3]["incumbent"], lines[3]["bound"]) == (40.0, 10.0)
    assert lines[5]["best_us"] == 30.0
    assert lines[5]["extract_seconds"] == 0.25
    assert (lines[6]["done"], lines[6]["total"]) == (1, 2)
