"""Models of one day by default options: is the file as fast as the report says, after how long?

The run times its result itself. Afterwards the file is timed again, beside the original, in heats of its
own. Both have intervals of 99 %: a report is true if these meet.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

import onnxruntime

from bench.common.machine import describe_commit, describe_machine
from bench.common.result_file import save_with_table
from bench.common.table import table_row
from bench.conformance.runs import sizes
from bench.exports.models import Made
from bench.exports.runs import run_model
from bench.exports.times import AGAIN, ORIGINAL, OURS, time_files
from relational_tensat.cost.race import Standing

#: What a run may take on two idle cores.
LIMIT_S = 20.0


@dataclass(frozen=True, slots=True)
class DayRow:
    """A model's run, and its file timed again. The attributes are keys of the results that the bench keeps.

    Attributes:
        basis: how the report knows its gain, measured or modelled; "kept" where the original is returned.
        reported: how many times as fast the report says the result is; 1 where the original is kept.
        interval: of that, where it was measured.
        timed: the file against the original, timed again.
        noise: the original against itself, by the same heats.
        load: how many processes wanted a processor when the run ended: the mean of a minute.
        failure: why there is none of all this.
    """

    name: str
    basis: str = ""
    reported: float = 1.0
    interval: tuple[float, float] | None = None
    original_ms: float = 0.0
    timed: Standing | None = None
    noise: Standing | None = None
    wall_s: float = 0.0
    cpu_s: float = 0.0
    load: float = 0.0
    failure: str = ""

    @property
    def agrees(self) -> bool:
        """Whether what the report says and what was timed again have a value in common."""
        if self.timed is None:
            return False
        low, high = self.interval or (self.reported, self.reported)
        return low <= self.timed.high and self.timed.low <= high

    @property
    def is_slower(self) -> bool:
        """Whether the file is slower than the original, beyond the noise."""
        return self.timed is not None and self.timed.high < 1


def try_of_the_day(
    made: Made, options: Sequence[str], heats: int, threads: int, limit_s: float
) -> DayRow:
    """Run a model by default options with an empty cache, and time its file again."""
    inputs = made.input_sets()[0]
    dims = sizes(made.path.read_bytes(), inputs)
    with tempfile.TemporaryDirectory(prefix="exports-") as name:
        folder = Path(name)
        ours = folder / made.path.name
        cache = ("--cost-cache", str(folder / "costs.duckdb"))
        start_s = time.perf_counter()
        run = run_model(made.path, ours, dims, (*options, *cache), limit_s)
        wall_s, load = time.perf_counter() - start_s, os.getloadavg()[0]
        if run.exit_code:
            failure = f"exit code {run.exit_code}: {run.message}"
            return DayRow(made.name, wall_s=wall_s, cpu_s=run.cpu_s, load=load, failure=failure)
        original_ms, standings = time_files(
            {ORIGINAL: made.path, OURS: ours}, inputs, heats, threads
        )
    timed, noise = standings[OURS], standings[AGAIN]
    basis, reported, interval = _reported(run.report["gain"])
    return DayRow(
        made.name, basis, reported, interval, original_ms, timed, noise, wall_s, run.cpu_s, load
    )


def _reported(gain: Mapping[str, Any]) -> tuple[str, float, tuple[float, float] | None]:
    if gain["original_kept"]:
        return "kept", 1.0, None
    own = gain["timed"] if gain["basis"] == "measured" else None
    return gain["basis"], gain["speedup"], None if own is None else (own["low"], own["high"])


def read_row(content: dict[str, Any]) -> DayRow:
    """Return a row as it was kept."""
    timed, noise, interval = (content.pop(key) for key in ("timed", "noise", "interval"))
    return DayRow(
        **content,
        timed=timed and Standing(**timed),
        noise=noise and Standing(**noise),
        interval=interval and (interval[0], interval[1]),
    )


def _machine_text() -> str:
    machine = describe_machine()
    return f"{machine['cores']} cores of an {machine['cpu']}"


def markdown(rows: Sequence[DayRow]) -> str:
    """Return the table, then what it comes to, and what failed."""
    heading = ["model", "ms", "the report", "timed again", "original again", "s", "CPU s", "load"]
    lines = [table_row(heading), table_row(["---"] * len(heading))]
    for row in rows:
        seconds = [f"{row.wall_s:.1f}", f"{row.cpu_s:.1f}", f"{row.load:.1f}"]
        cells = [f"{row.original_ms:.2f}", _said(row), _span(row.timed), _span(row.noise)]
        lines.append(table_row([row.name, *cells, *seconds]))
    timed = [row for row in rows if row.timed is not None]
    said = [row for row in timed if row.basis == "measured"]
    if timed:
        logarithms = [math.log(row.timed.speedup) for row in timed if row.timed is not None]
        mean = math.exp(sum(logarithms) / len(logarithms))
        faster = sum(row.timed is not None and row.timed.low > 1 for row in timed)
        lines += [
            "",
            f"geometric mean {mean:.3f}; beyond the noise {faster} are faster and "
            f"{sum(row.is_slower for row in timed)} slower, of {len(timed)}",
            f"of {len(said)} reports that measured, {sum(row.agrees for row in said)} have a value in "
            "common with what was timed again",
            f"within {LIMIT_S:.0f} s: {sum(row.wall_s <= LIMIT_S for row in timed)} of {len(timed)}",
        ]
    lines += [f"{row.name}: {row.failure}" for row in rows if row.failure]
    return "\n".join(lines)


def _said(row: DayRow) -> str:
    if row.failure:
        return "–"
    if row.basis == "kept":
        return "original kept"
    span = "" if row.interval is None else f" [{row.interval[0]:.3f}, {row.interval[1]:.3f}]"
    return f"{row.reported:.3f}{span}, {row.basis}"


def _span(standing: Standing | None) -> str:
    if standing is None:
        return "–"
    return f"{standing.speedup:.3f} [{standing.low:.3f}, {standing.high:.3f}]"


def save(
    rows: Sequence[DayRow], folder: Path, options: Sequence[str], threads: int, note: str
) -> Path:
    """Write ``exports-of-a-day-DATE.json`` and the table beside it; return the first.

    Raises:
        InputError: they cannot be written.
    """
    path = folder / f"exports-of-a-day-{date.today().isoformat()}.json"
    content = {"options": list(options), "threads": threads, "note": note}
    content |= {"rows": [asdict(row) for row in rows]}
    head = (
        "# Models of one day, by default options\n\n`python -m bench exports --of-a-day --save`, "
        f"{date.today().isoformat()}, commit {describe_commit()}, {_machine_text()}, onnxruntime "
        f"{onnxruntime.__version__}, threads: {threads}. {note}\n\n"
    )
    versions = {"onnxruntime": onnxruntime.__version__}
    return save_with_table(path, content, versions, f"{head}{markdown(rows)}\n")
