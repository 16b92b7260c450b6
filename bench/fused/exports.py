"""Exports of today with their kernels: each file's speed, what becomes of each kernel, time to optimize.

A model is optimized three times, as users do it: with kernels and empty caches; again; and without kernels.
Then its files take turns in heats of new sessions: the original, ours, ours with kernels, the same file
without its library, and OpenVINO, of the original and of ours without kernels. OpenVINO computes in threads
of its own, so all are timed by wall time where it takes part. Else one thread's CPU time counts.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import onnxruntime

import relational_tensat
from bench.common.table import table_row
from bench.conformance.runs import sizes
from bench.exports.models import Inputs, Made
from bench.exports.runs import Run, run_model
from relational_tensat.base.errors import InputError
from relational_tensat.base.folders import CACHE_VARIABLE
from relational_tensat.cost.cpu.session import refusals
from relational_tensat.cost.race import Standing

ORIGINAL, AGAIN = "original", "original again"
OURS, KERNELS, WITHOUT = "ours", "with kernels", "without its library"
OPENVINO, OURS_OPENVINO = "OpenVINO", "ours, OpenVINO"
HEADER = ("model", "threads", "ms", OURS, KERNELS, WITHOUT, OPENVINO, OURS_OPENVINO, AGAIN,
    "kernels", "s cold", "s warm", "CPU s cold", "CPU s warm", "load")  # fmt: skip
_ROUNDS, _WARM_UP, _SAMPLE_S = 7, 2, 0.003

Call = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class ExportRow:
    """A model with one number of threads; times as fast as the original, with intervals of 99 %.

    Attributes:
        original_ms: of one run.
        standings: of the other files, by what they are.
        kernels: of the file with kernels, that is written only if it is faster.
        parts: what became of each part of the model, as the report of the run has them.
        plain_s, cold_s, warm_s: wall seconds of a run without kernels, of one with them and empty caches,
            and of that again; likewise CPU seconds.
        load: processes that wanted the processors in the last minute.
        failures: what does not run, and why.
    """

    name: str
    threads: int
    original_ms: float
    standings: Mapping[str, Standing]
    kernels: int
    parts: Sequence[Mapping[str, Any]]
    plain_s: float
    cold_s: float
    warm_s: float
    plain_cpu_s: float
    cold_cpu_s: float
    warm_cpu_s: float
    load: float
    failures: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the attributes as an object."""
        return asdict(self)

    @classmethod
    def of_json(cls, content: Mapping[str, Any]) -> ExportRow:
        """Return a row as it was kept."""
        standings = {who: Standing(**each) for who, each in content["standings"].items()}
        return cls(**{**content, "standings": standings})


def run_export(made: Made, threads: int, heats: int, limit_s: float) -> ExportRow:
    """Optimize a model, and time its files.

    Args:
        made: the model, with inputs.
        threads: that files are made for, and run by.
        heats: that each file is in.
        limit_s: wall seconds of a run.
    """
    inputs = made.input_sets()[0]
    dims = sizes(made.path.read_bytes(), inputs)
    failures: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="kernels-") as name:
        folder = Path(name)
        fixed = ("--for", "onnxruntime", "--threads-at-inference", str(threads), "--static")

        def timed(file: str, *more: str) -> tuple[Path, Run, float]:
            target = folder / file / made.path.name
            target.parent.mkdir()
            started_s = time.perf_counter()
            run = run_model(made.path, target, dims, (*fixed, *more), limit_s)
            if run.exit_code:
                failures[file] = run.message
            return target, run, time.perf_counter() - started_s

        with patch.dict(os.environ, {CACHE_VARIABLE: str(folder / "cache")}):
            kernels, cold, cold_s = timed(KERNELS, "--fuse")
            _, warm, warm_s = timed("again", "--fuse")
            ours, plain, plain_s = timed(OURS)
            library = cold.report.get("library") or {}
            files = {ORIGINAL: made.path, OURS: ours}
            files |= {KERNELS: kernels, WITHOUT: kernels} if library.get("is_taken") else {}
            files |= {OPENVINO: made.path, OURS_OPENVINO: ours} if find_spec("openvino") else {}
            given = {who: file for who, file in files.items() if file.exists()}
            load = os.getloadavg()[0]
            original_ms, standings = _standings(given, inputs, threads, heats, failures)
    is_taken = bool(library.get("is_taken"))
    return ExportRow(
        made.name,
        threads,
        original_ms,
        standings,
        len(library["kernels"]) if is_taken else 0,
        library.get("parts", ()),
        plain_s,
        cold_s,
        warm_s,
        plain.cpu_s,
        cold.cpu_s,
        warm.cpu_s,
        load,
        failures,
    )


def _standings(
    files: Mapping[str, Path],
    inputs: Inputs,
    threads: int,
    heats: int,
    failures: dict[str, str],
) -> tuple[float, dict[str, Standing]]:
    """Return the original's milliseconds, and how fast the other files are; what fails is left out."""
    draw = np.random.default_rng(0)
    entries = {**files, AGAIN: files[ORIGINAL]}
    logarithms: dict[str, list[float]] = {who: [] for who in entries}
    original_ms = []
    has_openvino = OPENVINO in entries
    refused: tuple[type[Exception], ...] = (InputError, *refusals())
    clock = time.perf_counter if threads > 1 or has_openvino else time.thread_time
    for _ in range(heats):
        calls: dict[str, Call] = {}
        took_s = {}
        for who in draw.permutation(list(entries)).tolist():
            if who in failures:
                continue
            try:
                call = _call(who, entries[who], inputs, threads)
                for _ in range(_WARM_UP):
                    started_s = time.perf_counter()
                    call()
                    took_s[who] = time.perf_counter() - started_s
            except refused as error:
                failures[who] = str(error).splitlines()[0]
            else:
                calls[who] = call
        repeats = max(1, round(_SAMPLE_S / took_s[ORIGINAL]))
        times_s: dict[str, list[float]] = {who: [] for who in calls}
        for _ in range(_ROUNDS):
            for who in draw.permutation(list(calls)).tolist():
                started_s = clock()
                for _ in range(repeats):
                    calls[who]()
                times_s[who].append((clock() - started_s) / repeats)
        before = np.array(times_s[ORIGINAL])
        original_ms.append(1e3 * float(np.median(before)))
        for who, own in times_s.items():
            logarithms[who].append(float(np.median(np.log(before / np.array(own)))))
    standings = {
        who: Standing.of(own) for who, own in logarithms.items() if who != ORIGINAL and own
    }
    return float(np.median(original_ms)), standings


def _call(who: str, file: Path, inputs: Inputs, threads: int) -> Call:
    """Return what runs a file once."""
    if who in (OPENVINO, OURS_OPENVINO):
        from relational_tensat.cost.cpu.openvino_session import OpenVinoRun

        return OpenVinoRun(file, inputs, threads)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    if threads > 1:  # another session's idle threads would keep the processors from this one
        options.add_session_config_entry("session.force_spinning_stop", "1")
    options.log_severity_level = 4
    if who == KERNELS:
        relational_tensat.register(options, file)
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, inputs)


def cells(row: ExportRow) -> list[str]:
    """Return a row of the table."""
    spans = [_span(row.standings.get(who)) for who in HEADER[3:9]]
    cpu_s = [f"{row.cold_cpu_s:.0f}", f"{row.warm_cpu_s:.0f}"]
    seconds = [f"{row.cold_s:.0f}", f"{row.warm_s:.0f}", *cpu_s, f"{row.load:.1f}"]
    return [
        row.name,
        str(row.threads),
        f"{row.original_ms:.2f}",
        *spans,
        str(row.kernels),
        *seconds,
    ]


def summary(rows: Sequence[ExportRow]) -> list[str]:
    """Return what rows come to, and what failed."""
    lines = []
    for who in HEADER[3:9]:
        own = [math.log(row.standings[who].speedup) for row in rows if who in row.standings]
        if own:
            mean = math.exp(sum(own) / len(own))
            lines.append(f"{who}: geometric mean {mean:.3f} of {len(own)}")
    behind = [
        row.name
        for row in rows
        if OPENVINO in row.standings
        and max(row.standings[who].high for who in (OURS, KERNELS) if who in row.standings)
        < row.standings[OPENVINO].low
    ]
    lines += [f"behind OpenVINO beyond the noise: {', '.join(behind) or 'none'}"]
    lines += [f"{row.name}, {who}: {why}" for row in rows for who, why in row.failures.items()]
    return lines


def parts_table(rows: Sequence[ExportRow]) -> list[str]:
    """Return a table of the parts that have kernels, those that took most first."""
    heading = ("model", "operators", "places", "kernel µs", "onnxruntime µs")
    lines = [table_row(list(heading)), table_row(["---"] * len(heading))]
    for row in rows:
        timed = [part for part in row.parts if part["kernel_us"] is not None]
        for part in sorted(timed, key=lambda part: -part["places"] * part["plain_us"]):
            times = [f"{part['kernel_us']:.1f}", f"{part['plain_us']:.1f}"]
            operators = " ".join(part["operators"])
            lines.append(table_row([row.name, operators, str(part["places"]), *times]))
    return lines


def _span(standing: Standing | None) -> str:
    if standing is None:
        return ""
    return f"{standing.speedup:.3f} ({standing.low:.3f} to {standing.high:.3f})"
