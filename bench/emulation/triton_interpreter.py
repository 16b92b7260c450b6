"""Emitted Triton, run by Triton's own interpreter on NumPy's arrays: no GPU and no PyTorch.

Triton decides when it is imported whether it interprets: TRITON_INTERPRET=1 has to be set before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from relational_tensat.mugraph.kernels.emission import load_triton
from relational_tensat.mugraph.kernels.emit_triton import TritonKernel
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
    """Run a kernel.

    Raises:
        IndexError: it reads or writes outside of operands and results.
    """
    function = load_triton(kernel)
    given = [value.view(np.uint8) if value.dtype == bool else value for value in operands]
    arrays = [*map(np.ascontiguousarray, given), *results]
    with _watched(arrays):
        try:
            function[kernel.grid](*map(_HostTensor, arrays))
        except Exception as error:
            if isinstance(error.__cause__, IndexError):  # what Triton raises names a line
                raise error.__cause__ from None
            raise


class _Watch:
    """Triton's interpreter of memory; what is neither in one array nor masked is an error."""

    def __init__(self, interpreter: Any, arrays: Sequence[Array]) -> None:
        self._interpreter = interpreter
        self._ranges = [(a.ctypes.data, a.ctypes.data + a.nbytes, a.itemsize) for a in arrays]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._interpreter, name)

    def load(self, addresses: Array, mask: Array, other: Array, dtype: Any) -> Any:
        self._check(addresses, mask)
        return self._interpreter.load(addresses, mask, other, dtype)

    def store(self, addresses: Array, value: Array, mask: Array) -> Any:
        self._check(addresses, mask)
        return self._interpreter.store(addresses, value, mask)

    def _check(self, addresses: Array, mask: Array) -> None:
        used = addresses[np.broadcast_to(mask, addresses.shape).astype(bool)].astype(np.int64)
        is_inside = [
            bool(np.all((start <= used) & (used <= end - item_bytes)))
            for start, end, item_bytes in self._ranges
        ]
        if not any(is_inside):
            raise IndexError("a kernel reads or writes outside of its tensors")


@contextmanager
def _watched(arrays: Sequence[Array]) -> Iterator[None]:
    """Have Triton's interpreter look at each address."""
    from triton.runtime import interpreter

    plain = interpreter._interpreter
    interpreter._interpreter = _Watch(plain, arrays)
    try:
        yield
    finally:
        interpreter._interpreter = plain
