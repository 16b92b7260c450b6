"""Tensors as they lie in device memory, apart: what lies outside of them is seen by ``races.h``."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from relational_tensat.tensor import Array

#: Around each tensor in device memory, and what these bytes are: NaN in any type.
_GUARD_BYTES = 1 << 16
_GUARD = 0xFF
#: As device memory is allocated.
_ALIGNMENT_BYTES = 256


class DeviceMemory:
    """Tensors in one piece of memory, apart.

    Attributes:
        data: all bytes.
        is_of_tensor: for each byte, whether it is one of a tensor.
        tensors: the tensors, there.
    """

    def __init__(self, tensors: Sequence[Array]) -> None:
        rooms = [
            -(-t.nbytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES + _GUARD_BYTES for t in tensors
        ]
        whole = np.full(sum(rooms) + _GUARD_BYTES + _ALIGNMENT_BYTES, _GUARD, np.uint8)
        self.data = whole[-whole.ctypes.data % _ALIGNMENT_BYTES :]
        self.is_of_tensor = np.zeros(self.data.size, np.uint8)
        self.tensors = []
        start = _GUARD_BYTES
        for tensor, room in zip(tensors, rooms, strict=True):
            own = slice(start, start + tensor.nbytes)
            self.data[own] = np.ascontiguousarray(tensor).view(np.uint8).ravel()
            self.is_of_tensor[own] = 1
            self.tensors.append(self.data[own].view(tensor.dtype).reshape(tensor.shape))
            start += room

    def watch(self, library: ctypes.CDLL) -> None:
        """Have a library with ``races.h`` look at what its kernels touch in this memory."""
        library.watch_device(
            ctypes.c_void_p(self.data.ctypes.data),
            ctypes.c_ulong(self.data.size),
            ctypes.c_void_p(self.is_of_tensor.ctypes.data),
        )


def check_nothing_was_outside(library: ctypes.CDLL, name: str) -> None:
    """Check that a kernel has touched no bytes outside of tensors.

    Raises:
        AssertionError: it has.
    """
    outside = ctypes.c_int.in_dll(library, "outside_of_tensors").value
    assert outside == 0, f"{name}: {outside} bytes are touched outside of tensors"
