"""The device: its primary context through PyCUDA, its name, its versions."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from relational_tensat.base.errors import MissingDependencyError, first_line
from relational_tensat.gpu.install import INSTALL

#: Where Linux says which driver is loaded.
_DRIVER_FILE = Path("/sys/module/nvidia/version")
_NVML = "libnvidia-ml.so.1"
_NVML_TEXT_BYTES = 96


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU and the context that everything here runs in.

    Attributes:
        driver: the module ``pycuda.driver``.
        stream: on which everything is enqueued.
        name: what NVIDIA calls the device.
        arch: what NVRTC calls its instruction set, e.g. ``sm_90``.
        driver_version: of NVIDIA's driver, e.g. ``580.159.03``.
        l2_bytes: of its last-level cache.
    """

    driver: Any
    stream: Any
    name: str
    arch: str
    driver_version: str
    l2_bytes: int


@cache
def open_gpu() -> Gpu:
    """Return the first GPU (or the one that the variable CUDA_DEVICE names, see PyCUDA).

    Its primary context is current in this thread until the process ends.

    Raises:
        MissingDependencyError: PyCUDA, the driver or a GPU is missing; says which, in one line.
    """
    cuda = _pycuda()
    try:
        cuda.init()
        count = cuda.Device.count()
    except cuda.Error as error:
        raise MissingDependencyError(f"no NVIDIA GPU can be used: {error}") from error
    if count == 0:
        raise MissingDependencyError("there is no NVIDIA GPU in this machine")
    # The primary context, not one of our own: the libraries' runtime API uses no other.
    device = import_module("pycuda.autoprimaryctx").device
    major, minor = device.compute_capability()
    return Gpu(
        driver=cuda,
        stream=cuda.Stream(),
        name=device.name(),
        arch=f"sm_{major}{minor}",
        driver_version=_driver_version() or f"CUDA {cuda.get_driver_version()}",
        l2_bytes=device.get_attribute(cuda.device_attribute.L2_CACHE_SIZE),
    )


def _pycuda() -> Any:
    try:
        import pycuda
    except ImportError:
        raise MissingDependencyError(f"running on NVIDIA GPUs needs PyCUDA: {INSTALL}") from None
    try:
        return import_module("pycuda.driver")
    except ImportError as error:
        reason = first_line(error)
        raise MissingDependencyError(
            f"running on NVIDIA GPUs needs NVIDIA's driver, beside PyCUDA {pycuda.VERSION_TEXT} "
            f"({reason})"
        ) from error


def _driver_version() -> str:
    """Return the version of NVIDIA's driver, "" where nothing says it."""
    try:
        return _DRIVER_FILE.read_text(encoding="ascii").strip()
    except OSError:
        return _nvml_driver_version()


def _nvml_driver_version() -> str:
    try:
        nvml = ctypes.CDLL(_NVML)
    except OSError:
        return ""
    text = ctypes.create_string_buffer(_NVML_TEXT_BYTES)
    if nvml.nvmlInit_v2() or nvml.nvmlSystemGetDriverVersion(text, _NVML_TEXT_BYTES):
        return ""
    nvml.nvmlShutdown()
    return text.value.decode()
