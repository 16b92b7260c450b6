"""``relational-tensat run`` on a model, in a process of its own with a time limit, as users run it."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: The exit code of a run that was ended at its limit.
TIME_OUT = 124
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Run:
    """What one run did and took.

    Attributes:
        exit_code: of the command; ``TIME_OUT``, or below 0 where a signal ended it.
        message: the last line of its standard error, where the exit code is not 0.
        report: what it printed as JSON; empty without.
        cpu_s: of all threads.
        peak_mib: the most memory that the process had, mapped files included.
    """

    exit_code: int
    message: str
    report: Mapping[str, Any]
    cpu_s: float
    peak_mib: float


def run_model(
    model: Path, output: Path, dims: Mapping[str, int], options: Sequence[str], limit_s: float
) -> Run:
    """Optimize a model as the command line does, at sizes of its dynamic dimensions.

    Args:
        options: more of the command line's.
        limit_s: wall seconds after which the process is killed.
    """
    sizes = ",".join(f"{name}={size}" for name, size in dims.items())
    command = [
        *(
            sys.executable,
            "-m",
            "relational_tensat",
            "run",
            str(model),
            "-o",
            str(output),
            "--json",
        ),
        *(["--dim", sizes] if sizes else []),
        *options,
    ]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=out, stderr=errors)
        status, usage, peak_mib, is_late = _watched(process.pid, limit_s)
        process.returncode = os.waitstatus_to_exitcode(status)  # it has been waited for
        out.seek(0)
        errors.seek(0)
        lines, messages = out.read().splitlines(), errors.read().splitlines()
    exit_code = TIME_OUT if is_late else process.returncode
    return Run(
        exit_code,
        (messages or ["no message"])[-1] if exit_code else "",
        json.loads(lines[-1]) if lines and exit_code == 0 else {},
        usage.ru_utime + usage.ru_stime,
        peak_mib,
    )


def _watched(pid: int, limit_s: float) -> tuple[int, resource.struct_rusage, float, bool]:
    """Wait for a process; return its status, usage, peak memory in MiB, and whether it was killed.

    Its usage has no peak of its own: a process begins with that of the one that started it.
    """
    deadline_s = time.monotonic() + limit_s
    peak_mib, is_late = 0.0, False
    while True:
        peak_mib = max(peak_mib, _peak_mib(pid))
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            return status, usage, peak_mib, is_late
        if not is_late and time.monotonic() > deadline_s:
            is_late = True
            os.kill(pid, signal.SIGKILL)
        time.sleep(_POLL_S)


def _peak_mib(pid: int) -> float:
    """Return the most memory that a process had so far; 0 where the system does not report it."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)
