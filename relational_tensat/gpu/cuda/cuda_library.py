"""The kernel library of a real GPU: NVIDIA's libraries where they serve, our kernels elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from relational_tensat.base.errors import InputError
from relational_tensat.gpu.calls import Call, Convolution, Pooling, Product
from relational_tensat.gpu.cuda.cublaslt import open_cublaslt
from relational_tensat.gpu.cuda.cudnn import open_cudnn
from relational_tensat.gpu.cuda.gpu import Gpu
from relational_tensat.gpu.cuda.modules import Modules
from relational_tensat.gpu.fallback import own_launch
from relational_tensat.gpu.library import BoundCall, Resolve
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
        """Prepare a call: the first of its candidates that runs here.

        Each is tried once on the spot, for what a library supports shows only when it is called;
        results in memory are overwritten.

        Raises:
            InputError: none does; gives the last one's reason.
        """
        return self.choose(call, resolve)[1]

    def choose(self, call: Call, resolve: Resolve) -> tuple[int, BoundCall]:
        """Return the first of a call's candidates that runs here, and which one it is.

        Raises:
            InputError: as ``bind``.
        """
        reason = InputError("no kernel")
        for number, prepare in enumerate(self._candidates(call, resolve)):
            try:
                bound = prepare()
            except InputError as error:
                reason = error
                continue
            try:
                self._try(bound)
            except InputError as error:
                bound.close()
                reason = error
            else:
                return number, bound
        raise reason

    def bind_again(self, call: Call, resolve: Resolve, choice: int) -> BoundCall:
        """Prepare a call at other addresses, by the candidate that ``choose`` found; it is not tried.

        Raises:
            InputError: it is refused all the same.
        """
        return list(self._candidates(call, resolve))[choice]()

    def _candidates(self, call: Call, resolve: Resolve) -> Iterator[Callable[[], BoundCall]]:
        blas, dnn = self._blas, self._dnn
        if isinstance(call, Product) and blas is not None:
            yield lambda: blas.bind(call, resolve, fused=True)
            yield lambda: blas.bind(call, resolve, fused=False)
        if isinstance(call, Convolution) and dnn is not None:
            yield lambda: dnn.bind(call, resolve, fused=True)
            yield lambda: dnn.bind(call, resolve, fused=False)
        if isinstance(call, Pooling) and dnn is not None:
            yield lambda: dnn.bind_pool(call, resolve)
        yield lambda: self._modules.bind(own_launch(call), resolve)

    def _try(self, bound: BoundCall) -> None:
        """Run a call once.

        Raises:
            InputError: it is refused.
        """
        workspace = self.allocate(bound.workspace_bytes) if bound.workspace_bytes else 0
        try:
            bound.start(workspace)
            self.synchronize()
        finally:
            if workspace:
                self.free(workspace)
