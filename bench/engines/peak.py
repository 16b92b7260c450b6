"""The most memory that this process had."""

from __future__ import annotations

import resource
from pathlib import Path


def peak_mib() -> float:
    """Return it; on Linux without that of the process that started this one, which ``getrusage`` counts."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    peaks = [int(line.split()[1]) for line in lines if line.startswith("VmHWM:")]
    return (peaks[0] if peaks else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / 1024
