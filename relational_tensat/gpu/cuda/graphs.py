"""CUDA graphs: a sequence of launches recorded once, started as one.

PyCUDA has none; the driver's functions come from ``cuda.bindings``, on PyCUDA's stream.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relational_tensat.gpu.bindings import checked, cuda_driver
from relational_tensat.gpu.cuda.gpu import Gpu


class RecordedLaunches:
    """What was enqueued while recording, ready to be started again and again."""

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
