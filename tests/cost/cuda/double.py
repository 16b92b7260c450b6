"""A CUDA library and timer without CUDA: the NumPy double, on a clock that counts launches."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from relational_tensat.gpu.calls import BoundCall, Call, Resolve
from tests.gpu.fake_cuda import fake_gpu
from tests.gpu.numpy_library import NumpyLibrary


class CudaDouble(NumpyLibrary):
    """What ``CudaLibrary`` has beside the interface of all kernel libraries."""

    def __init__(self) -> None:
        super().__init__()
        self.gpu = fake_gpu(memcpy_dtod=self._copy)

    def versions(self) -> dict[str, str]:
        return {"kernels": "double"}

    def choose(self, call: Call, resolve: Resolve) -> tuple[int, BoundCall]:
        return 0, self.bind(call, resolve)

    def bind_again(self, call: Call, resolve: Resolve, choice: int) -> BoundCall:
        assert choice == 0
        return self.bind(call, resolve)

    def poison(self, address: int, nbytes: int) -> None:
        self.memory.bytes_at(address, nbytes)[:] = 0xFF

    def _copy(self, target: int, source: int, nbytes: int) -> None:
        self.memory.bytes_at(target, nbytes)[:] = self.memory.bytes_at(source, nbytes)


class FakeTimer:
    """Every launch of work takes ``launch_us``; nothing is computed while timing."""

    def __init__(self, library: Any, launch_us: float = 30.0) -> None:
        self.library = library
        self.launch_us = launch_us
        self.flushes = 0

    def time_us(self, before: Callable[[], None], work: Callable[[], None]) -> float:
        before()
        work()
        return self.launch_us

    def flush_cache(self) -> None:
        self.flushes += 1

    def reference_us(self) -> float:
        return 500.0


class FakeRecording:
    """Stands for a CUDA graph: enqueues again what was recorded."""

    alive = 0
    started = 0

    def __init__(self, gpu: Any, enqueue: Callable[[], None]) -> None:
        self._enqueue = enqueue
        FakeRecording.alive += 1

    def start(self) -> None:
        FakeRecording.started += 1
        self._enqueue()

    def close(self) -> None:
        FakeRecording.alive -= 1


def off_by(factor: float, kernel: Callable[..., None]) -> Callable[..., None]:
    """Return an element-wise kernel or a product whose float32 results are wrong by a factor."""

    def wrong(memory: Any, kind: str, arguments: dict[str, Any]) -> None:
        kernel(memory, kind, arguments)
        product = "c" in arguments
        sizes = (*arguments["batches"], arguments["m"]) if product else ()
        every = np.arange(math.prod((*sizes, arguments["n"])))
        place = arguments["c" if product else "dst"]
        memory.store(place, "float32", every, memory.load(place, "float32", every) * factor)

    return wrong
