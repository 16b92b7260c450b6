"""One whole run of the command line: from the start of its process to the written file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relational_tensat.base.errors import NoSolutionError

#: The phases of a process, in their order; ``rest`` is what is in no other.
PHASES = ("start", "load", "price", "explore", "extract", "verify", "write", "rest")


@dataclass(frozen=True, slots=True)
class ProcessRun:
    """What one process did and took; as JSON, a run of a saved result.

    Attributes:
        limit_s: the wall seconds that it should take at most.
        wall_s: from the start of the process to its end; the file is written by then.
        cpu_s: of all its threads.
        peak_bytes: the most memory that it held.
        phases: wall seconds by ``PHASES``; ``start`` is the interpreter, the imports and the report.
        database_s: wall seconds of SQL statements.
        statements: how many of these there were, extraction's included.
        comparisons: how often the optimized graph was run against the original.
        worst_error: the worst relative error in them.
    """

    model: str
    limit_s: float
    wall_s: float
    cpu_s: float
    peak_bytes: int
    phases: Mapping[str, float]
    database_s: float
    statements: int
    e_nodes: int
    iterations: int
    stop_reason: str
    cost_before_us: float
    cost_after_us: float
    gap: float
    comparisons: int
    worst_error: float

    @property
    def in_time(self) -> bool:
        """Whether it took no longer than it should."""
        return self.wall_s <= self.limit_s


def measure_process(
    name: str, model: Path, limit_s: float, options: Sequence[str] = ()
) -> ProcessRun:
    """Run ``relational-tensat run MODEL`` in a process of its own, with the given options.

    Raises:
        NoSolutionError: it failed; with its last line.
    """
    with tempfile.TemporaryDirectory(prefix="relational-tensat-") as folder:
        output = Path(folder) / f"out{model.suffix}"
        command = [
            *(sys.executable, "-m", "relational_tensat", "run", str(model), "-o", str(output)),
            *("--json", *options),
        ]
        with (Path(folder) / "log").open("w+b") as log:
            started = time.perf_counter()
            process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, env=_environment()
            )
            _, status, usage = os.wait4(process.pid, 0)
            wall_s = time.perf_counter() - started
            process.returncode = os.waitstatus_to_exitcode(status)  # it has been waited for
            log.seek(0)
            lines = log.read().decode().splitlines()
        if process.returncode or not output.is_file():
            reason = lines[-1] if lines else "no output"
            raise NoSolutionError(f"{name}: exit code {process.returncode}: {reason}")
    return _process_run(
        name,
        limit_s,
        wall_s,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss * 1024,
        json.loads(lines[-1]),
    )


def _environment() -> dict[str, str]:
    """Return the environment of a process that may keep compiled modules, as installed ones are."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


def _process_run(
    name: str, limit_s: float, wall_s: float, cpu_s: float, peak_bytes: int, report: dict[str, Any]
) -> ProcessRun:
    seconds = report["seconds"]
    phases = {"start": max(wall_s - seconds["total"], 0.0)}
    phases |= {phase: seconds[phase] for phase in PHASES[1:-1]}
    phases["rest"] = max(wall_s - sum(phases.values()), 0.0)
    statements = report["time_spent"]["statements"]
    return ProcessRun(
        model=name,
        limit_s=limit_s,
        wall_s=wall_s,
        cpu_s=cpu_s,
        peak_bytes=peak_bytes,
        phases=phases,
        database_s=sum(statement["seconds"] for statement in statements),
        statements=sum(statement["count"] for statement in statements),
        e_nodes=report["e_nodes"],
        iterations=report["iterations"],
        stop_reason=report["stop_reason"],
        cost_before_us=report["cost_before_us"],
        cost_after_us=report["cost_after_us"],
        gap=report["gap"],
        comparisons=report["verified"]["runs"],
        worst_error=report["verified"]["max_relative_error"],
    )
