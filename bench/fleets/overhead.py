"""What a fleet takes for each task beside the task itself, in CPU time: its tasks do nothing here."""

from __future__ import annotations

import importlib
import json
import resource
import tempfile
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from bench.models import MODELS
from relational_tensat.fleet import FleetRow, fleet
from relational_tensat.fleet.task import Files, FleetTask, versions
from relational_tensat.run.options import Options

_MODULE = importlib.import_module("relational_tensat.fleet.fleet")
#: As long as a report of a small model's run.
_REPORT = json.dumps({"model": "x" * 20_000})


@dataclass(frozen=True, slots=True)
class Overhead:
    """CPU milliseconds for each task of two fleets, and what one more task takes."""

    on: str
    few: int
    many: int
    each_ms: float


def overhead(on: str, few: int, many: int) -> Overhead:
    """Return what a task takes beside itself: the difference of two fleets, by their tasks."""
    few_s, many_s = (_cpu_s(on, count) for count in (few, many))
    return Overhead(on, few, many, (many_s - few_s) / (many - few) * 1e3)


def _cpu_s(on: str, count: int) -> float:
    from relational_tensat.formats.frontend import frontend_of

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first = folder / "0.json"
        frontend_of(first).write(MODELS["nasrnn"](), first, None)
        for number in range(1, count):
            (folder / f"{number}.json").symlink_to(first)
        start_s = _used_s()
        options = Options.of(deterministic=True)
        with patch.object(_MODULE, "carry_out", _nothing):
            rows = fleet([folder / "*.json"], folder / "out", options, on=on)
        assert len(rows) == count and {row.state for row in rows} == {"refused"}
        return _used_s() - start_s


def _nothing(task: FleetTask) -> tuple[FleetRow, Files]:
    row = FleetRow(
        task.model, task.model_digest, task.options_digest, versions(), "refused", "nothing was done",
        task.attempts, report=_REPORT, rules=(("a", 1), ("b", 2)),
    )  # fmt: skip
    return row, ()


def _used_s() -> float:
    """Return the CPU seconds of this process, and of those that have ended for it."""
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)
