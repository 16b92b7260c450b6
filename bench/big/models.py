"""Optimizing models of hundreds of megabytes and of gigabytes: CPU seconds and memory.

Each measurement is a process of its own, looked at from outside while it runs. Beside a run stands what
onnxruntime takes to open the original as by default and run it once, since every run does that.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnxruntime

from bench.big.transformers import SHAPES, Shape, write_transformer
from relational_tensat.base.errors import RelationalTensatError

MODELS = SHAPES

_POLL_S = 0.02
_MIB = 2**20
_OPTIMIZE, _RUNTIME = "optimize", "onnxruntime"
_NO_LOG = 4


@dataclass(frozen=True, slots=True)
class ModelRow:
    """What one process took. The attributes are keys of the results that the bench writes.

    Attributes:
        model: of ``MODELS``.
        what: ``optimize`` or ``onnxruntime``.
        file_mib: the model's file and its data.
        peak_mib: the most memory that the process had, mapped files included.
        own_mib: the most without mapped files, which the system can take back at any time.
        note: the last line that it printed.
    """

    model: str
    what: str
    file_mib: float
    cpu_s: float
    wall_s: float
    peak_mib: float
    own_mib: float
    note: str = ""


def measure_model(name: str, folder: Path) -> list[ModelRow]:
    """Write a model, unless it is there, run it in onnxruntime, and optimize it.

    Raises:
        RelationalTensatError: a process failed.
    """
    path = made(name, MODELS[name], folder)
    commands = {
        _RUNTIME: [sys.executable, "-m", "bench.big.models", str(path)],
        _OPTIMIZE: [
            *(sys.executable, "-m", "relational_tensat", "run", str(path), "--quiet", "--force"),
            *("-o", str(folder / f"{name}-optimized.onnx")),
        ],
    }
    rows = []
    for what, command in commands.items():
        print(f"{name}, {what} ...", file=sys.stderr, flush=True)
        rows.append(ModelRow(name, what, _size_mib(path), **_watched(command)))
    return rows


def made(name: str, shape: Shape, folder: Path) -> Path:
    """Return the model's file in a folder; it is written if it is not there."""
    path = folder / f"{name}.onnx"
    if not path.exists():
        print(f"{path} ...", file=sys.stderr, flush=True)
        write_transformer(shape, path)
    return path


def table(rows: list[ModelRow]) -> str:
    """Return the rows for people."""
    lines = [
        f"{'model':8} {'what':12} {'file MiB':>9} {'CPU s':>7} {'wall s':>7} {'peak MiB':>9} "
        f"{'own MiB':>9}  note"
    ]
    lines += [
        f"{row.model:8} {row.what:12} {row.file_mib:9,.0f} {row.cpu_s:7.1f} {row.wall_s:7.1f} "
        f"{row.peak_mib:9,.0f} {row.own_mib:9,.0f}  {row.note}".rstrip()
        for row in rows
    ]
    return "\n".join(lines)


def _watched(command: list[str]) -> dict[str, Any]:
    """Run a process; return what it took.

    Raises:
        RelationalTensatError: its exit code is not 0.
    """
    start_s = time.perf_counter()
    own_kib = 0
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while True:
            own_kib = max(own_kib, _own_kib(process.pid))
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            time.sleep(_POLL_S)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.stdout is not None
        assert process.stderr is not None
        output, errors = process.stdout.read(), process.stderr.read()
    if process.returncode:
        reason = (errors.splitlines() or ["no message"])[-1]
        raise RelationalTensatError(f"{command}: exit code {process.returncode}: {reason}")
    return {
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "wall_s": time.perf_counter() - start_s,
        "peak_mib": usage.ru_maxrss / 1024,
        "own_mib": own_kib / 1024,
        "note": (output.splitlines() or [""])[-1].partition(": ")[2],
    }


def _own_kib(pid: int) -> int:
    """Return the memory of a process that is no mapped file; 0 where the system does not report it."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("RssAnon:")), 0)


def _size_mib(path: Path) -> float:
    files = (path, path.with_name(f"{path.name}.data"))
    return sum(file.stat().st_size for file in files if file.exists()) / _MIB


def run_in_runtime(path: Path) -> None:
    """Open a model as onnxruntime does by default, on one core, and run it once on zeros."""
    import numpy as np

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = _NO_LOG
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    feeds = {value.name: np.zeros(value.shape, np.int64) for value in session.get_inputs()}
    session.run(None, feeds)


if __name__ == "__main__":
    run_in_runtime(Path(sys.argv[1]))
