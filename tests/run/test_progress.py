"""What is kept of a run's course, and that all is still reported."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb

from relational_tensat import Options, optimize
from relational_tensat.run.progress import Recording
from tests.graphs import shared_matmuls


class Calls:
    """Progress that remembers what was reported to it."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *values: self.calls.append((name, *values))


def test_graphs_and_bounds_are_remembered_when_they_move_and_all_is_handed_on() -> None:
    progress = Calls()
    recording = Recording(progress)
    report: Any = SimpleNamespace(iteration=3)
    recording.phase("explore")
    recording.iteration(report)
    recording.extraction(40.0, -math.inf)
    recording.extraction(40.0, -math.inf)
    recording.extraction(40.0, 10.0)
    recording.extracted(report)
    recording.phase("extract")
    recording.extraction(40.0, 10.0)
    recording.measuring(1, 2)
    assert [event[1:] for event in recording.events] == [
        ("explore", 3, 40.0, None), ("explore", 3, 40.0, 10.0), ("extract", 3, 40.0, 10.0),
    ]  # fmt: skip
    assert [name for name, *_ in progress.calls] == [
        "phase", "iteration", "extraction", "extraction", "extraction", "extracted", "phase",
        "extraction", "measuring",
    ]  # fmt: skip


def test_a_run_keeps_its_course(tmp_path: Path) -> None:
    path = tmp_path / "run.duckdb"
    result = optimize(shared_matmuls(), Options.of(db=path))
    with duckdb.connect(str(path), read_only=True) as connection:
        events = connection.execute("SELECT incumbent_us, bound_us FROM run_event").fetchall()
        phases = dict(
            connection.execute(
                "SELECT phase, sum(seconds) FROM time_spent GROUP BY phase"
            ).fetchall()
        )
    assert events[-1] == (result.cost_after_us, result.bound_us)
    assert phases.keys() == dict(result.time_spent.phases).keys()
    for phase, seconds in result.time_spent.phases.items():
        assert math.isclose(phases[phase], seconds, abs_tol=1e-6)
