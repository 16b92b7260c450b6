"""The task of a fleet: one model, optimized. A pure function, which any process may carry out."""

from __future__ import annotations

import json
import os
import platform
import resource
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from relational_tensat import __version__
from relational_tensat.base.errors import RelationalTensatError, first_line
from relational_tensat.formats.file_digest import file_digest
from relational_tensat.run.options import Options
from relational_tensat.run.pipeline import optimize
from relational_tensat.run.result import Result

#: Of a row: another graph was written; the original was; the program cannot use the model; its process
#: ended, again and again.
CHANGED, KEPT, REFUSED, LOST = "changed", "kept", "refused", "lost"
_KILOBYTES = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True, slots=True)
class FleetTask:
    """A model to optimize.

    Attributes:
        model: its name in the ledger: its path below the output folder.
        source, output: where it is, and where the result goes.
        model_digest, options_digest: of what decides the result.
        attempts: how often it was begun, this time included.
    """

    model: str
    source: Path
    output: Path
    options: Options
    model_digest: str
    options_digest: str
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class FleetRow:
    """What became of a model: a row of ``fleet_run``, whose columns say what each attribute is."""

    model: str
    model_digest: str
    options_digest: str
    version: str
    state: str
    reason: str = ""
    attempts: int = 1
    host: str = ""
    ended: datetime = field(default_factory=lambda: datetime.now(UTC).replace(tzinfo=None))
    output: str | None = None
    output_digest: str | None = None
    basis: str | None = None
    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    cost_before_us: float | None = None
    cost_after_us: float | None = None
    nodes_before: int | None = None
    nodes_after: int | None = None
    bytes_before: int | None = None
    bytes_after: int | None = None
    cpu_s: float = 0.0
    wall_s: float = 0.0
    peak_bytes: int = 0
    report: str | None = None
    rules: tuple[tuple[str, int], ...] = ()


def carry_out(task: FleetTask) -> FleetRow:
    """Optimize a model; what the program says against it is a result, too."""
    start_s, start_cpu_s = time.perf_counter(), time.process_time()
    try:
        task.output.parent.mkdir(parents=True, exist_ok=True)
        result: Result | None = optimize(task.source, task.options, output=task.output)
        reason = ""
    except (RelationalTensatError, OSError) as error:
        result, reason = None, first_line(error)
    peak_kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    row = FleetRow(
        task.model,
        task.model_digest,
        task.options_digest,
        versions(),
        REFUSED,
        reason,
        task.attempts,
        platform.node(),
        cpu_s=time.process_time() - start_cpu_s,
        wall_s=time.perf_counter() - start_s,
        peak_bytes=peak_kilobytes * _KILOBYTES,
    )
    return row if result is None else _with_result(row, task, result)


def _with_result(row: FleetRow, task: FleetTask, result: Result) -> FleetRow:
    from dataclasses import replace

    gain, change = result.gain, result.change
    timed = None if gain.is_kept else gain.measured
    return replace(
        row,
        state=KEPT if result.unchanged else CHANGED,
        output=task.output.name if os.sep not in task.model else task.model,
        output_digest=file_digest(task.output),
        basis=gain.basis,
        speedup=gain.speedup,
        low=None if timed is None else timed.low,
        high=None if timed is None else timed.high,
        cost_before_us=result.cost_before_us,
        cost_after_us=result.cost_after_us,
        nodes_before=None if change is None else change.before.nodes,
        nodes_after=None if change is None else change.after.nodes,
        bytes_before=None if change is None else change.before.bytes,
        bytes_after=None if change is None else change.after.bytes,
        report=json.dumps(result.to_json()),
        rules=tuple(sorted(result.rules_used.items())),
    )


def versions() -> str:
    """Return the versions that decide a result."""
    try:
        runtime = f", onnxruntime {version('onnxruntime')}"
    except PackageNotFoundError:
        runtime = ""
    return f"{__version__}{runtime}"
