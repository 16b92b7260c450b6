"""The device: its primary context through PyCUDA, its versions, its clock, and what is started on it.

A CUDA graph is a sequence of launches, recorded once and started as one. PyCUDA has none; the driver's
functions come from ``cuda.bindings``, on PyCUDA's stream. Of several ways to start the same work the
fastest is chosen by a few runs of each.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from relational_tensat.base.errors import InputError, MissingDependencyError, first_line
from relational_tensat.gpu.nvrtc import INSTALL, checked, cuda_driver

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
        name: NVIDIA's name of the device.
        arch: NVRTC's name of its instruction set, e.g. ``sm_90``.
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


class Events:
    """A pair of events: the begin and the end of what is timed."""

    def __init__(self, gpu: Gpu) -> None:
        self._stream = gpu.stream
        self._begin, self._end = gpu.driver.Event(), gpu.driver.Event()

    def time_us(self, before: Callable[[], None], work: Callable[[], None]) -> float:
        """Return how long ``work`` takes on the GPU.

        Args:
            before: enqueued first and not timed: while it runs, the timed work is enqueued, so that
                the GPU never waits for this process.
        """
        before()
        self._begin.record(self._stream)
        work()
        self._end.record(self._stream)
        self._end.synchronize()
        return float(self._begin.time_till(self._end)) * 1e3


class RecordedLaunches:
    """Launches enqueued while recording, ready to be started again and again."""

    def __init__(self, driver: Any, stream: Any, executable: Any) -> None:
        self._driver = driver
        self._stream = stream
        self._executable = executable

    def start(self) -> None:
        """Enqueue all of it at once."""
        checked(self._driver.cuGraphLaunch(self._executable, self._stream), "cuGraphLaunch")

    def close(self) -> None:
        """Give it back to the driver."""
        if self._executable is not None:
            checked(self._driver.cuGraphExecDestroy(self._executable), "cuGraphExecDestroy")
            self._executable = None


def record_launches(gpu: Gpu, enqueue: Callable[[], None]) -> RecordedLaunches:
    """Record what ``enqueue`` puts on the GPU's stream; nothing of it runs yet.

    All of it must have run once before, so that nothing is allocated or loaded while recording.

    Raises:
        MissingDependencyError: cuda-bindings is not installed.
        InputError: the driver refuses.
    """
    driver = cuda_driver("CUDA graphs")
    stream = driver.CUstream(gpu.stream.handle)
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
    checked(driver.cuStreamBeginCapture(stream, mode), "cuStreamBeginCapture")
    try:
        enqueue()
    finally:  # the capture must end, whatever happened in it
        capture = driver.cuStreamEndCapture(stream)
    (graph,) = checked(capture, "cuStreamEndCapture")
    try:
        (executable,) = checked(driver.cuGraphInstantiate(graph, 0), "cuGraphInstantiate")
    finally:
        checked(driver.cuGraphDestroy(graph), "cuGraphDestroy")
    return RecordedLaunches(driver, stream, executable)


#: Runs that are timed together, and how many times; the shortest of these counts.
_TOGETHER, _TIMES = 10, 3
#: A smaller lead counts as level: the first one is taken, so that a noisy clock decides nothing.
_TIE = 0.02


def quickest(gpu: Gpu, starts: Sequence[Callable[[], None]]) -> int:
    """Return the number of the way that takes the least time; of one alone, it is not run.

    Args:
        starts: each enqueues the work on the GPU's stream.

    Raises:
        InputError: none of them runs; gives the last one's reason.
    """
    if len(starts) == 1:
        return 0
    times_us: dict[int, float] = {}
    reason = InputError("there is no way to start it")
    for number, start in enumerate(starts):
        try:
            times_us[number] = _time_us(gpu, start)
        except InputError as error:
            reason = error
    if not times_us:
        raise reason
    enough_us = (1 + _TIE) * min(times_us.values())
    return next(number for number, time_us in times_us.items() if time_us <= enough_us)


def _time_us(gpu: Gpu, start: Callable[[], None]) -> float:
    """Return the microseconds of a run, as part of a CUDA graph.

    Raises:
        InputError: it does not run.
    """

    def together() -> None:
        for _ in range(_TOGETHER):
            start()

    try:
        start()  # once before it is recorded: nothing may be loaded then
        gpu.stream.synchronize()
        recorded = record_launches(gpu, together)
        try:
            events = Events(gpu)
            times_us = [events.time_us(recorded.start, recorded.start) for _ in range(_TIMES)]
        finally:
            recorded.close()
    except gpu.driver.Error as error:
        raise InputError(f"the GPU: {error}") from error
    return min(times_us) / _TOGETHER
