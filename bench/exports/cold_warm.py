"""Whole runs with costs that are measured here: with an empty cost cache, and with what they left in it."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path

import onnxruntime

from bench.common.machine import describe_commit
from bench.common.result_file import save_with_table
from bench.common.table import table_row
from bench.conformance.runs import sizes
from bench.exports.models import Made
from bench.exports.runs import run_model

#: What a run may take on an idle machine, in wall seconds.
COLD_LIMIT_S, WARM_LIMIT_S = 120.0, 20.0
#: Phases that are shown, and measuring, which is a part of them.
PHASES = ("load", "price", "explore", "extract", "whole", "verify", "write")


@dataclass(frozen=True, slots=True)
class TimedRun:
    """One run. The attributes are keys of the results that the bench keeps.

    Attributes:
        wall_s, cpu_s: of the whole process.
        load: how many processes wanted a processor when it ended, this one included: the mean of a minute.
        seconds: by phase, as the run reports them.
        measured, estimated: configurations.
        rounds: races; 0 where all graphs had been timed.
        outcome: what the race said, and what was returned: "faster 1.05", "kept 0.99".
        failure: why there is none of all this.
    """

    wall_s: float
    cpu_s: float
    load: float
    seconds: Mapping[str, float] = field(default_factory=dict)
    measured: int = 0
    estimated: int = 0
    rounds: int = 0
    outcome: str = ""
    failure: str = ""


@dataclass(frozen=True, slots=True)
class ColdWarm:
    """A model's two runs. The attributes are keys of the results that the bench keeps."""

    name: str
    cold: TimedRun
    warm: TimedRun

    @property
    def is_met(self) -> bool:
        """Whether both runs ended well and within their limits."""
        if self.cold.failure or self.warm.failure:
            return False
        return self.cold.wall_s <= COLD_LIMIT_S and self.warm.wall_s <= WARM_LIMIT_S


def run_twice(made: Made, options: Sequence[str], limit_s: float) -> ColdWarm:
    """Run a model with an empty cache of its own, and again."""
    with tempfile.TemporaryDirectory(prefix="exports-") as name:
        folder = Path(name)
        ours = (*options, "--cost-cache", str(folder / "costs.duckdb"), "--force")
        cold, warm = (_run(made, folder / "out.onnx", ours, limit_s) for _ in range(2))
        return ColdWarm(made.name, cold, warm)


def _run(made: Made, output: Path, options: Sequence[str], limit_s: float) -> TimedRun:
    dims = sizes(made.path.read_bytes(), made.input_sets()[0])
    start_s = time.perf_counter()
    run = run_model(made.path, output, dims, options, limit_s)
    wall_s = time.perf_counter() - start_s
    load = os.getloadavg()[0]
    if run.exit_code:
        failure = f"exit code {run.exit_code}: {run.message}"
        return TimedRun(wall_s, run.cpu_s, load, failure=failure)
    race, costs = run.report["race"], run.report["costs"]
    return TimedRun(
        wall_s,
        run.cpu_s,
        load,
        dict(run.report["seconds"]),
        costs["measured"],
        costs["estimated"],
        race["rounds"] if race else 0,
        _outcome(race["kept"], race["final"]["speedup"]) if race else "not raced",
    )


def _outcome(kept: str, speedup: float) -> str:
    return f"{'kept' if kept == 'original' else 'faster'} {speedup:.3f}"


def markdown(rows: Sequence[ColdWarm]) -> str:
    """Return the table, then how many kept the limits, and what failed."""
    heading = [
        "model",
        "run",
        "wall s",
        "CPU s",
        "load",
        *PHASES,
        "(measuring)",
        "measured",
        "estimated",
    ]
    lines = [table_row([*heading, "races", "outcome"]), table_row(["---"] * (len(heading) + 2))]
    for row in rows:
        for label, limit_s, run in (
            ("cold", COLD_LIMIT_S, row.cold),
            ("warm", WARM_LIMIT_S, row.warm),
        ):
            late = "" if run.wall_s <= limit_s else f" > {limit_s:.0f}"
            phases = [f"{run.seconds.get(name, 0.0):.1f}" for name in (*PHASES, "measure")]
            cells = [f"{run.wall_s:.1f}{late}", f"{run.cpu_s:.1f}", f"{run.load:.1f}", *phases]
            counts = [str(run.measured), str(run.estimated), str(run.rounds)]
            lines.append(table_row([row.name, label, *cells, *counts, run.failure or run.outcome]))
    met = sum(row.is_met for row in rows)
    lines += [
        "",
        f"cold within {COLD_LIMIT_S:.0f} s and warm within {WARM_LIMIT_S:.0f}: {met} of {len(rows)}",
    ]
    return "\n".join(lines)


def save(
    rows: Sequence[ColdWarm],
    folder: Path,
    options: Sequence[str],
    note: str,
    *,
    stem: str = "exports",
) -> Path:
    """Write ``STEM-cold-warm-DATE.json`` and the table beside it; return the first.

    Raises:
        InputError: they cannot be written.
    """
    path = folder / f"{stem}-cold-warm-{date.today().isoformat()}.json"
    content = {"options": list(options), "note": note, "runs": [asdict(row) for row in rows]}
    head = (
        f"# Whole runs, cache empty and warm\n\n`python -m bench exports --cold-warm --save`, "
        f"{date.today().isoformat()}, commit {describe_commit()}, onnxruntime {onnxruntime.__version__}; "
        f"`{' '.join(options)}`. {note}\n\n"
    )
    versions = {"onnxruntime": onnxruntime.__version__}
    return save_with_table(path, content, versions, f"{head}{markdown(rows)}\n")
