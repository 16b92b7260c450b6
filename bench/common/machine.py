"""Where and with what a result was measured."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path

#: The packages whose version a measurement depends on.
PACKAGES = ("duckdb", "highspy", "numpy", "pyarrow")
_CPU_INFO = Path("/proc/cpuinfo")


def describe_machine() -> dict[str, str | int | None]:
    """Return the processor, the number of cores and the operating system."""
    return {"cpu": _cpu_name(), "cores": os.cpu_count(), "system": platform.platform()}


def describe_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that do the work."""
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}


@cache
def describe_commit() -> str | None:
    """Return the commit that was checked out when first asked, marked where files differed from it.

    Later the result itself may be such a file, where a bench saves row by row.

    None outside a Git repository, or in one without a commit.
    """
    command = ["git", "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
    try:
        process = subprocess.run(
            command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
    except (FileNotFoundError, subprocess.CalledProcessError):
        return None
    return process.stdout.strip()


def _cpu_name() -> str:
    if _CPU_INFO.exists():
        for line in _CPU_INFO.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
