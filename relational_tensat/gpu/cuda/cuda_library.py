"""The kernel library of a real GPU: NVIDIA's libraries where they serve, our kernels elsewhere.

Its timer takes microseconds between two events of the stream, with clean caches, and knows the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from relational_tensat.base.errors import InputError
from relational_tensat.gpu.calls import (
    BoundCall,
    Call,
    Convolution,
    Pooling,
    ProductCall,
    Ref,
    Resolve,
)
from relational_tensat.gpu.cuda.cublaslt import open_cublaslt
from relational_tensat.gpu.cuda.cudnn import open_cudnn
from relational_tensat.gpu.cuda.gpu import Events, Gpu, quickest
from relational_tensat.gpu.cuda.modules import Modules
from relational_tensat.gpu.library_calls import own_launch
from relational_tensat.gpu.nvrtc import nvrtc_version, sources_hash
from relational_tensat.tensor import Array


class CudaLibrary:
    """Memory and kernels of one GPU; implements ``KernelLibrary``.

    Args:
        own_only: leave NVIDIA's libraries alone.
    """

    def __init__(self, gpu: Gpu, *, own_only: bool = False) -> None:
        self.gpu = gpu
        self._modules = Modules(gpu)
        self._blas = None if own_only else open_cublaslt(gpu, self._modules)
        self._dnn = None if own_only else open_cudnn(gpu, self._modules)
        self._memory: dict[int, Any] = {}
        #: The numbers of the candidates that calls run by, wherever their operands lie.
        self._chosen: dict[ProductCall | Convolution, int] = {}

    def versions(self) -> dict[str, str]:
        """Return the versions of all that runs kernels here, by name; "none" for what is missing."""
        return {
            "cublasLt": "none" if self._blas is None else self._blas.version,
            "cudnn": "none" if self._dnn is None else self._dnn.version,
            "kernels": sources_hash(),
            "nvrtc": nvrtc_version(),
        }

    def allocate(self, nbytes: int) -> int:
        """Return the address of new memory.

        Raises:
            InputError: there is not so much.
        """
        try:
            memory = self.gpu.driver.mem_alloc(nbytes)
        except self.gpu.driver.MemoryError as error:
            raise InputError(f"the GPU has no {nbytes:,} bytes left: {error}") from error
        except self.gpu.driver.Error as error:
            raise InputError(f"the GPU: {error}") from error
        self._memory[int(memory)] = memory
        return int(memory)

    def free(self, address: int) -> None:
        """Give memory back, once nothing enqueued uses it."""
        self.synchronize()
        self._memory.pop(address).free()

    def clear(self, address: int, nbytes: int) -> None:
        """Fill memory with zeros, behind what was enqueued before."""
        self.gpu.driver.memset_d8_async(address, 0, nbytes, self.gpu.stream)

    def write(self, address: int, data: Array) -> None:
        """Copy bytes to the device."""
        self.gpu.driver.memcpy_htod(address, np.ascontiguousarray(data))

    def read(self, address: int, nbytes: int) -> Array:
        """Copy bytes from the device, once all that was enqueued is done."""
        self.synchronize()
        data = np.empty(nbytes, np.uint8)
        self.gpu.driver.memcpy_dtoh(data, address)
        return data

    def poison(self, address: int, nbytes: int) -> None:
        """Fill memory with bytes that are NaN as floats."""
        self.gpu.driver.memset_d8_async(address, 0xFF, nbytes, self.gpu.stream)

    def synchronize(self) -> None:
        """Wait for all that was enqueued.

        Raises:
            InputError: a kernel has failed, since what was last waited for; says how.
        """
        try:
            self.gpu.stream.synchronize()
        except self.gpu.driver.Error as error:
            raise InputError(f"the GPU: {error}") from error

    def bind(self, call: Call, resolve: Resolve) -> BoundCall:
        """Prepare a call, by the candidate that ``choose`` finds.

        Each is tried on the spot, for what a library supports shows only when it is called; results in
        memory are overwritten.

        Raises:
            InputError: none does; gives the last one's reason.
        """
        return self.choose(call, resolve)[1]

    def choose(self, call: Call, resolve: Resolve) -> tuple[int, BoundCall]:
        """Return a call by the fastest of a library's ways, and its number; by our own kernel without one.

        A library that does bias and activation itself may do so by a slow algorithm only.

        Raises:
            InputError: as ``bind``.
        """
        key = call.anywhere() if isinstance(call, (ProductCall, Convolution)) else None
        if key is not None and key in self._chosen:
            with suppress(InputError):  # its operands lie as no algorithm takes them
                return self._chosen[key], self.bind_again(call, resolve, self._chosen[key])
        *of_library, own = enumerate(self._candidates(call, resolve))
        running, reason = self._running(of_library)
        if not running:
            running, reason = self._running([own])
        if not running:
            raise reason
        number = self._fastest(running)
        for other in running.keys() - {number}:
            running[other].close()
        if key is not None:
            self._chosen[key] = number
        return number, running[number]

    def _running(
        self, candidates: Sequence[tuple[int, Callable[[], BoundCall]]]
    ) -> tuple[dict[int, BoundCall], InputError]:
        """Return the candidates that run, by number, and why the last of the others did not."""
        running: dict[int, BoundCall] = {}
        reason = InputError("no kernel")
        for number, prepare in candidates:
            try:
                bound = prepare()
            except InputError as error:
                reason = error
                continue
            try:
                workspace = self.allocate(bound.workspace_bytes) if bound.workspace_bytes else 0
                try:
                    bound.start(workspace)
                    self.synchronize()
                finally:
                    if workspace:
                        self.free(workspace)
            except InputError as error:
                bound.close()
                reason = error
            else:
                running[number] = bound
        return running, reason

    def _fastest(self, running: Mapping[int, BoundCall]) -> int:
        numbers = list(running)
        needed = max(call.workspace_bytes for call in running.values())
        workspace = self.allocate(needed) if needed and len(numbers) > 1 else 0
        try:
            starts = [partial(running[number].start, workspace) for number in numbers]
            return numbers[quickest(self.gpu, starts)]
        finally:
            if workspace:
                self.free(workspace)

    def bind_again(self, call: Call, resolve: Resolve, choice: int) -> BoundCall:
        """Prepare a call at other addresses, by the candidate that ``choose`` found; it is not tried.

        Raises:
            InputError: it is refused all the same.
        """
        return list(self._candidates(call, resolve))[choice]()

    def _candidates(self, call: Call, resolve: Resolve) -> Iterator[Callable[[], BoundCall]]:
        blas, dnn = self._blas, self._dnn
        if isinstance(call, ProductCall) and blas is not None:
            yield lambda: blas.bind(call, resolve, fused=True)
            yield lambda: blas.bind(call, resolve, fused=False)
        if isinstance(call, Convolution) and dnn is not None:
            yield lambda: dnn.bind(call, resolve, fused=True)
            yield lambda: dnn.bind(call, resolve, fused=False)
        if isinstance(call, Pooling) and dnn is not None:
            yield lambda: dnn.bind_pool(call, resolve)
        yield lambda: self._modules.bind(own_launch(call), resolve)


#: Edge of the product that tells how fast the clock is: about half a millisecond on a data-centre GPU.
_REFERENCE_EDGE = 1024
_REFERENCE_REPEATS = 4


class Timer:
    """Events, a buffer that fills the L2 cache, and the fixed product.

    The product runs on our own kernel: whichever libraries there are, it is the same.
    """

    def __init__(self, library: CudaLibrary) -> None:
        self._library = library
        self._gpu: Gpu = library.gpu
        self._events = Events(library.gpu)
        self._flush_words = max(2 * self._gpu.l2_bytes, 64 << 20) // 4
        self._flush = library.allocate(4 * self._flush_words)
        self._turn = 0
        self._reference = self._make_reference()

    def time_us(self, before: Callable[[], None], work: Callable[[], None]) -> float:
        """Return how long ``work`` takes on the GPU, see ``Events``."""
        return self._events.time_us(before, work)

    def flush_cache(self) -> None:
        """Enqueue writes of twice the L2 cache: nothing else is left in it."""
        self._turn += 1  # another pattern each time, so that each write changes something
        self._gpu.driver.memset_d32_async(
            self._flush, self._turn & 0xFFFF, self._flush_words, self._gpu.stream
        )

    def reference_us(self) -> float:
        """Return the microseconds of the fixed product: less than usual, and the clock is faster."""
        return self.time_us(self._reference, self._repeat_reference) / _REFERENCE_REPEATS

    def _repeat_reference(self) -> None:
        for _ in range(_REFERENCE_REPEATS):
            self._reference()

    def _make_reference(self) -> Callable[[], None]:
        n = _REFERENCE_EDGE
        call = ProductCall(
            c=Ref("c"), a=Ref("a"), b=Ref("b"), bias=None, dtype="float32", math="fp32",
            m=n, n=n, k=n, batches=(1, 1, 1), a_strides=(0, 0, 0), b_strides=(0, 0, 0), a_pitch=n,
            b_pitch=n, bias_strides=(0, 0, 0, 0, 0), act="none",
        )  # fmt: skip
        addresses = {name: self._library.allocate(4 * n * n) for name in "abc"}
        for address in addresses.values():
            self._gpu.driver.memset_d32(address, 0x3F000000, n * n)  # 0.5, everywhere
        bound = self._library.bind(own_launch(call), lambda ref: addresses[ref.buffer])
        return lambda: bound.start(0)
