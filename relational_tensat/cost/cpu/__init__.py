"""Costs measured on this machine's processor: operators run by ONNX Runtime on one thread."""

from __future__ import annotations

import importlib.util
import math

from relational_tensat.base.errors import MissingDependencyError
from relational_tensat.cost.device import Device

__all__ = ["open_device"]


def open_device(optimizations: str = "off", patience_s: float | None = None) -> Device:
    """Return this machine's processor.

    Args:
        optimizations: onnxruntime's graph optimizations, ``off`` or ``all``. Off is the default, for
            then the times of single operators add up to a graph's.
        patience_s: wall seconds to wait for undisturbed moments, per configuration; None for one, and
            less where many are asked for at once.

    Raises:
        MissingDependencyError: onnx or onnxruntime is not installed.
    """
    missing = [name for name in ("onnx", "onnxruntime") if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingDependencyError(
            f"--cost cpu needs {' and '.join(missing)}: pip install 'relational-tensat[onnx]'"
        )
    from relational_tensat.cost.cpu.onnxruntime_device import (
        OnnxRuntimeDevice,  # imports what may be missing
    )

    if patience_s is None:
        return OnnxRuntimeDevice(optimizations)
    return OnnxRuntimeDevice(optimizations, patience_s=math.inf, most_patience_s=patience_s)
