"""A file with kernels in other versions of onnxruntime: whether its library is taken, and what it is worth.

Each version is installed into a folder of its own, and a process of its own runs the file there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HEADER = ("onnxruntime", "kernels", "largest difference", "times as fast", "what it says")
_ROUNDS = 15


def run_version(version: str, file: Path, folder: Path) -> dict[str, Any]:
    """Return what a version does with a file: kernels, error, speedup, said.

    Args:
        version: of onnxruntime; NumPy 1 goes with those before 1.19.
        file: ``run --fuse`` has written it, with kernels.
        folder: where the version is installed, if it is not there yet.
    """
    own = folder / version
    is_old = tuple(map(int, version.split(".")[:2])) < (1, 19)
    packages = [f"onnxruntime=={version}"]
    packages += ["numpy<2", "ml_dtypes==0.4.1", "onnx==1.18.0"] if is_old else []
    if not own.is_dir():
        install = ["pip", "install", "--quiet", "--no-deps", "--target", str(own), *packages]
        subprocess.run([sys.executable, "-m", *install], check=True)
    paths = [str(own), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-m", __name__, str(file.resolve())]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        *_, last = ("nothing", *filter(str.strip, done.stderr.splitlines()))
        return {"version": version, "said": last}
    said = next((line for line in done.stderr.splitlines() if "kernels" in line), "")
    return {"version": version, "said": said, **json.loads(done.stdout.splitlines()[-1])}


def cells(row: Mapping[str, Any]) -> Sequence[str]:
    """Return a row of the table."""
    if "kernels" not in row:
        return [row["version"], "", "", "", row["said"]]
    figures = (f"{row['error']:.1e}", f"{row['speedup']:.3f}") if row["kernels"] else ("", "")
    return [row["version"], str(row["kernels"]), *figures, row["said"]]


def _compare(file: Path) -> dict[str, Any]:
    """Run a file with its kernels and without, in this process's onnxruntime."""
    import numpy as np
    import onnxruntime

    import relational_tensat

    def options() -> Any:
        made = onnxruntime.SessionOptions()
        made.intra_op_num_threads, made.log_severity_level = 1, 4
        return made

    own = options()
    kernels = relational_tensat.register(own, file)
    sessions = [
        onnxruntime.InferenceSession(str(file), each, providers=["CPUExecutionProvider"])
        for each in (own, options())
    ]
    draw = np.random.default_rng(0).standard_normal
    feeds = {
        each.name: draw([size if isinstance(size, int) else 1 for size in each.shape], np.float32)
        for each in sessions[0].get_inputs()
    }
    found, wanted = (session.run(None, feeds) for session in sessions)
    errors = [
        float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(found, wanted, strict=True)
    ]
    times_s: list[list[float]] = [[], []]
    for _ in range(_ROUNDS):
        for session, own_s in zip(sessions, times_s, strict=True):
            started_s = time.thread_time()
            session.run(None, feeds)
            own_s.append(time.thread_time() - started_s)
    with_s, without_s = (float(np.median(own_s)) for own_s in times_s)
    return {"kernels": len(kernels), "error": max(errors), "speedup": without_s / with_s}


if __name__ == "__main__":
    import logging

    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    print(json.dumps(_compare(Path(sys.argv[1]))))
