"""Emitted Triton, run by Triton's own interpreter on NumPy's arrays: no GPU and no PyTorch.

Triton decides when it is imported whether it interprets: TRITON_INTERPRET=1 has to be set before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relational_tensat.mugraph.kernels.triton.emit_triton import TritonKernel
from relational_tensat.mugraph.kernels.triton.machine_code import load_triton
from relational_tensat.tensor import Array


class _HostTensor:
    """What Triton's interpreter asks of a tensor of PyTorch's."""

    def __init__(self, array: Array | None = None) -> None:
        self.array = array

    @property
    def dtype(self) -> str:
        assert self.array is not None
        return str(self.array.dtype)

    def data_ptr(self) -> int:
        assert self.array is not None
        return int(self.array.ctypes.data)

    def untyped_storage(self) -> _HostTensor:
        return self

    def cpu(self) -> _HostTensor:
        return self

    def new_empty(self, size: int, device: str) -> _HostTensor:
        return _HostTensor()

    def set_(self, storage: _HostTensor, *layout: Any) -> None:
        self.array = storage.array

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        assert self.array is not None
        return self.array.shape

    def stride(self) -> tuple[int, ...]:
        return ()

    def copy_(self, other: _HostTensor) -> None:
        assert other.array is self.array


def run_interpreted(
    kernel: TritonKernel, operands: Sequence[Array], results: Sequence[Array]
) -> None:
    """Run a kernel."""
    function = load_triton(kernel)
    arrays = [*map(np.ascontiguousarray, operands), *results]
    function[kernel.grid](*map(_HostTensor, arrays))
