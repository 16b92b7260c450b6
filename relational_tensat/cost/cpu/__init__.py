"""Costs measured on this machine's processor: operators run by ONNX Runtime."""

from __future__ import annotations

import importlib.util

from relational_tensat.base.errors import MissingDependencyError, UsageError
from relational_tensat.base.process import processors
from relational_tensat.cost.device import Device

__all__ = ["open_device"]


def open_device(mode: str = "off") -> Device:
    """Return this machine's processor.

    Args:
        mode: onnxruntime's graph optimizations, ``off`` or ``all``. Off is the default, for then the
            times of single operators add up to a graph's. And how many threads run each operator, one
            unless it says so: ``threads=4``, ``all:threads=4``.

    Raises:
        MissingDependencyError: onnx or onnxruntime is not installed.
        UsageError: the machine has fewer processors.
    """
    optimizations, threads = _mode(mode)
    missing = [name for name in ("onnx", "onnxruntime") if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingDependencyError(
            f"--cost cpu needs {' and '.join(missing)}: pip install 'relational-tensat[onnx]'"
        )
    # it imports packages that may be missing
    from relational_tensat.cost.cpu.onnxruntime_device import OnnxRuntimeDevice

    return OnnxRuntimeDevice(optimizations, threads=threads)


def _mode(text: str) -> tuple[str, int]:
    """Return the optimizations and the threads that a mode says."""
    optimizations, threads = "off", 1
    for part in text.split(":"):
        if part.startswith("threads="):
            threads = int(part.removeprefix("threads="))
        else:
            optimizations = part
    if not 1 <= threads <= processors():
        raise UsageError(f"threads={threads}: expected 1 to {processors()}, the processors here")
    return optimizations, threads
