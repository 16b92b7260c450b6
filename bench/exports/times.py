"""How fast a model's files are by onnxruntime's defaults: the original, ours, the peers', the original.

Heats as in a race of a run (``relational_tensat.cost.race``): new sessions, made and run in shuffled order.
With one thread, its CPU time counts; with more, wall time.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from bench.conformance.runs import sizes
from bench.exports.models import Inputs, Made
from bench.exports.peers import PEERS, installed_peers
from bench.exports.runs import run_model
from relational_tensat.cost.race import Standing

ORIGINAL, OURS, AGAIN = "original", "ours", "original again"
#: Our file as onnxruntime saves it on this machine, where our run found that faster: else ours.
OURS_HERE = "ours, this machine"
#: Rounds of a heat; runs before they count.
_ROUNDS, _WARM_UP = 7, 2
#: A sample of the original takes about so long, all files are run as often in theirs: the first run of a
#: sample finds the least in the caches, so a quicker file must not have more runs behind its first.
_SAMPLE_S = 0.003
_NO_LOG = 4


@dataclass(frozen=True, slots=True)
class Timing:
    """A model's files, timed. The attributes are keys of the results that the bench keeps.

    Attributes:
        threads: of onnxruntime.
        original_ms: of one run.
        standings: how many times as fast as the original each other file is, by who wrote it.
        predicted: our speed-up, as the run modelled it.
        kept: whether our file is the original.
        wall_s: of our run, race included.
        failures: why there is no standing, by who wrote the file.
    """

    name: str
    threads: int
    original_ms: float = 0.0
    standings: Mapping[str, Standing] = field(default_factory=dict)
    predicted: float = 1.0
    kept: bool = False
    wall_s: float = 0.0
    failures: Mapping[str, str] = field(default_factory=dict)


def time_model(
    made: Made, options: Sequence[str], heats: int, threads: Sequence[int], limit_s: float
) -> list[Timing]:
    """Time a model's files, with each number of threads.

    Args:
        options: of our run, which chooses and is timed for the same number of threads.
        heats: that each file is in.
    """
    inputs = made.input_sets()[0]
    timings = []
    for count in threads:
        with tempfile.TemporaryDirectory(prefix="exports-") as folder:
            own = for_threads(options, count)
            files, facts, failures = _written(made, inputs, own, Path(folder), limit_s)
            original_ms, standings = time_files(files, inputs, heats, count)
            timings.append(
                Timing(made.name, count, original_ms, standings, **facts, failures=failures)
            )
    return timings


def for_threads(options: Sequence[str], count: int) -> list[str]:
    """Return options of a run with its costs of so many threads, where they are a processor's."""
    own = list(options)
    for place, text in enumerate(options[:-1]):
        source = options[place + 1]
        if text == "--cost" and count > 1 and source in ("cpu", "cpu:all", "analytic:cpu"):
            own[place + 1] = f"{source}:threads={count}"
    return own


def _written(
    made: Made, inputs: Inputs, options: Sequence[str], folder: Path, limit_s: float
) -> tuple[dict[str, Path], dict[str, Any], dict[str, str]]:
    """Let everybody write a file; return the files, what our run reported, and who failed why."""
    files = {ORIGINAL: made.path}
    facts: dict[str, Any] = {}
    failures = {}
    dims = sizes(made.path.read_bytes(), inputs)
    if (
        "--cost-cache" not in options
    ):  # what races said elsewhere, or of a busy machine, does not count here
        options = [*options, "--cost-cache", str(folder / "costs.duckdb")]
    for who, more in {OURS: (), OURS_HERE: ("--this-machine",)}.items():
        ours = folder / who / made.path.name
        ours.parent.mkdir()
        start_s = time.perf_counter()
        run = run_model(made.path, ours, dims, (*options, *more), limit_s)
        if run.exit_code:
            failures[who] = f"exit code {run.exit_code}: {run.message}"
            continue
        files[who] = ours
        if who == OURS:
            before, after = (
                run.report[kernels] + run.report[beside]
                for kernels, beside in (
                    ("cost_before_us", "run_us"),
                    ("cost_after_us", "run_after_us"),
                )
            )
            facts = {
                "predicted": before / after if after else 1.0,
                "kept": made.path.read_bytes() == ours.read_bytes(),
                "wall_s": time.perf_counter() - start_s,
            }
    for name in installed_peers():
        target = folder / name / made.path.name
        target.parent.mkdir()
        try:
            PEERS[name](made.path, target)
            _session(target, 1)
            files[name] = target
        except Exception as error:  # the tools' errors have no common base class
            failures[name] = " ".join(str(error).split())[:200]
    return files, facts, failures


def time_files(
    files: Mapping[str, Path], inputs: Inputs, heats: int, threads: int
) -> tuple[float, dict[str, Standing]]:
    """Time files beside each other, the original's twice.

    Args:
        files: by who wrote them, the original's the first.

    Returns:
        Milliseconds of one run of the original, and the standings of the others by who wrote them.
    """
    rng = np.random.default_rng(0)
    entries = [*files.items(), (AGAIN, files[ORIGINAL])]
    logarithms = np.empty((heats, len(entries)))
    original_s = []
    for heat in logarithms:
        times_s = _heat([path for _, path in entries], inputs, threads, rng)
        heat[:] = np.median(np.log(times_s[:, :1] / times_s), axis=0)
        original_s.append(float(np.median(times_s[:, 0])))
    standings = {
        who: Standing.of(logarithms[:, index].tolist())
        for index, (who, _) in enumerate(entries)
        if who != ORIGINAL
    }
    return float(np.median(original_s)) * 1e3, standings


def _heat(
    paths: Sequence[Path], inputs: Inputs, threads: int, rng: np.random.Generator
) -> np.ndarray:
    """Return seconds, per round and file, the original the first."""
    clock = time.thread_time if threads == 1 else time.perf_counter
    sessions: dict[int, Any] = {}
    took_s: dict[int, float] = {}
    for index in rng.permutation(len(paths)).tolist():
        session = sessions[index] = _session(paths[index], threads)
        for _ in range(_WARM_UP):
            start_s = time.perf_counter()
            session.run(None, inputs)
            took_s[index] = time.perf_counter() - start_s
    repeats = max(1, round(_SAMPLE_S / took_s[0]))
    times_s = np.empty((_ROUNDS, len(paths)))
    for row in times_s:
        for index in rng.permutation(len(paths)).tolist():
            start_s = clock()
            for _ in range(repeats):
                sessions[index].run(None, inputs)
            row[index] = (clock() - start_s) / repeats
    return times_s


def _session(path: Path, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    if threads > 1:  # another session's idle threads would keep the processors from this one
        options.add_session_config_entry("session.force_spinning_stop", "1")
    options.log_severity_level = _NO_LOG
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
