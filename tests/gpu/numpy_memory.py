"""Device memory as NumPy has it: separate allocations, poisoned, no access beyond their ends."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from relational_tensat.gpu.memory import decode, encode
from relational_tensat.tensor import DTYPE_BYTES, TensorType

_FIRST_ADDRESS = 1 << 20
#: As floats of any width these bytes are NaN: what reads memory that nothing wrote shows.
_POISON = 0xFF


class NumpyMemory:
    """Allocations by address; addresses are multiples of 256, and 0 is none."""

    def __init__(self) -> None:
        self._next = _FIRST_ADDRESS
        self._blocks: dict[int, Any] = {}

    def allocate(self, nbytes: int) -> int:
        address, self._next = self._next, self._next + (nbytes // 256 + 2) * 256
        self._blocks[address] = np.full(nbytes, _POISON, np.uint8)
        return address

    def free(self, address: int) -> None:
        del self._blocks[address]

    @property
    def live(self) -> int:
        """How many allocations there are."""
        return len(self._blocks)

    def bytes_at(self, address: int, nbytes: int) -> Any:
        """Return a view of memory; a range outside of one allocation is an error."""
        starts = sorted(self._blocks)
        place = bisect_right(starts, address) - 1
        assert place >= 0, f"address {address} lies in no allocation"
        block, offset = self._blocks[starts[place]], address - starts[place]
        assert offset + nbytes <= block.size, "access beyond the end of an allocation"
        return block[offset : offset + nbytes]

    def load(self, address: int, dtype: str, offsets: Any) -> Any:
        """Return elements by their distance from an address, floats in float64."""
        width = DTYPE_BYTES[dtype]
        count = int(offsets.max()) + 1
        assert int(offsets.min()) >= 0, "access before the start of an operand"
        values = decode(self.bytes_at(address, count * width), TensorType(dtype, (count,)))
        taken = values[offsets]
        return taken.astype(np.float64) if taken.dtype.kind == "f" else taken

    def store(self, address: int, dtype: str, offsets: Any, values: Any) -> None:
        """Write elements by their distance from an address, rounded to the type."""
        width = DTYPE_BYTES[dtype]
        count = int(offsets.max()) + 1
        data = self.bytes_at(address, count * width).reshape(count, width)
        encoded = encode(np.broadcast_to(values, offsets.shape), dtype)
        data[offsets.reshape(-1)] = encoded.reshape(-1, width)

    def load_raw(self, address: int, width: int, offsets: Any) -> Any:
        """Return elements of ``width`` bytes, one row of bytes each."""
        assert address % width == 0, "misaligned access"
        count = int(offsets.max()) + 1
        return self.bytes_at(address, count * width).reshape(count, width)[offsets.reshape(-1)]

    def store_raw(self, address: int, width: int, offsets: Any, rows: Any) -> None:
        """Write elements of ``width`` bytes, one row of bytes each."""
        assert address % width == 0, "misaligned access"
        count = int(offsets.max()) + 1
        self.bytes_at(address, count * width).reshape(count, width)[offsets.reshape(-1)] = rows


def strided(sizes: Sequence[int], strides: Sequence[int]) -> Any:
    """Return the offsets that a view walks through, in order, as an array of its sizes."""
    offsets = np.zeros((), np.int64)
    for size, stride in zip(sizes, strides, strict=True):
        offsets = offsets[..., None] + np.arange(size) * stride
    return offsets
