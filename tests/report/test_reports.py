"""The report for people and the one for programs."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace

import pytest
from rich.console import Console

from relational_tensat.explore import IterationReport
from relational_tensat.report.json import json_report
from relational_tensat.report.text import print_report, summary_line
from relational_tensat.report.watch import ConsoleProgress
from relational_tensat.result import Result
from tests.report.results import example_result
from tests.report.schema import check_schema


def printed(result: Result, *, terminal: bool | None = None) -> str:
    file = io.StringIO()
    print_report(result, Console(file=file, width=200, highlight=False, force_terminal=terminal))
    return file.getvalue()


def test_the_json_object_has_the_documented_schema() -> None:
    found = json.loads(json_report(example_result()))
    check_schema(found)
    assert found["rules"]["merge-matmuls"] == {"matches": 3, "applied": 1, "seconds": 0.25}
    assert found["verified"] == {"ok": True, "max_relative_error": 1.5e-15, "runs": 2}
    assert found["output"] == "models/pair.opt.json"
    check_schema(json.loads(json_report(replace(example_result(), output=None))))


def test_json_never_holds_infinity() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        json_report(replace(example_result(), gap=math.inf))


def test_the_report_says_what_was_gained_and_how() -> None:
    text = printed(example_result())
    assert "cost under t4: 40.00 µs → 30.00 µs (25.00% saved, 1.333x faster)" in text
    assert "1,530 e-nodes in 586 e-classes, 8 iterations; saturated" in text
    assert "merge-matmuls" in text
    assert "relu-relu" not in text  # it matched, but made nothing of the result
    assert "load 0.50 s (25%), explore 1.00 s (50%)" in text
    assert "written to models/pair.opt.json" in text
    assert "note: a note" in text
    rows = [line.split() for line in text.splitlines()]
    assert ["matmul", "2", "1", "-1"] in rows
    assert ["split", "0", "1", "+1"] in rows
    assert ["add", "1", "1"] in rows
    assert not any(row[:1] == ["concat"] for row in rows)  # on weights only: not at inference


def test_verification_is_reported_with_what_was_checked() -> None:
    text = printed(example_result())
    assert "verified: 2 comparisons, worst relative error 1.50e-15" in text
    assert "float64, random weights: 2 runs" in text
    assert "worst 1.50e-15" in text
    assert "caution: 2 of 2 weights have no data" in text


def test_optimal_is_said_only_when_proven() -> None:
    result = example_result()
    gap = "gap 10.00% (no graph in it costs less than 27.00 µs)"
    assert gap in printed(result)
    assert "optimal" not in printed(result)
    proven = replace(result, optimal=True, gap=0.0, bound_us=30.0)
    assert "optimal for this e-graph" in printed(proven)
    assert "no bound" in printed(replace(result, bound_us=0.0, gap=1.0))


def test_the_summary_is_one_line() -> None:
    line = summary_line(example_result())
    assert "\n" not in line
    assert "40.00 µs → 30.00 µs" in line
    assert "gap 10.00%" in line


def test_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[3" in printed(example_result(), terminal=True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in printed(example_result(), terminal=True)


def test_progress() -> None:
    file = io.StringIO()
    progress = ConsoleProgress(Console(file=file, width=200))
    progress.phase("explore")
    progress.phase("explore")
    progress.iteration(IterationReport(2, 1530, 586, 44, 3, 0, 30, 0.5))
    progress.extraction(math.inf, 0.0)
    progress.extraction(50.0, 40.0)  # too soon after the last to be read
    assert file.getvalue().splitlines() == [
        "explore …",
        "  iteration 2: 1,530 e-nodes, 586 classes, 44 matches, 0.50 s",
        "  best graph none yet, bound none yet",
    ]
