"""Elements as bytes: arrays to and from what lies in device memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from relational_tensat.tensor import DTYPE_BYTES, Array, TensorType, numpy_dtype


def encode(array: Any, dtype: str) -> Array:
    """Return an array's elements as bytes, row by row, rounded to ``dtype``.

    bfloat16, which NumPy lacks, rounds to nearest, ties to even.
    """
    if dtype != "bfloat16":
        with np.errstate(over="ignore"):  # what a type cannot hold is infinite there
            held = np.ascontiguousarray(array, dtype=numpy_dtype(dtype))
        return held.reshape(-1).view(np.uint8)
    bits = np.ascontiguousarray(array, dtype=np.float32).reshape(-1).view(np.uint32)
    rounded = (bits + (0x7FFF + ((bits >> 16) & 1))) >> 16
    quiet = np.where(np.isnan(bits.view(np.float32)), (bits >> 16) | 0x40, rounded)
    return quiet.astype(np.uint16).view(np.uint8)


def decode(data: Array, kind: TensorType) -> Array:
    """Return bytes as an array of that type; bfloat16 as float32."""
    if kind.dtype != "bfloat16":
        return data.view(numpy_dtype(kind.dtype)).reshape(kind.shape)
    wide = data.view(np.uint16).astype(np.uint32) << 16
    return wide.view(np.float32).reshape(kind.shape)


def element_bits(value: float, dtype: str) -> int:
    """Return one number's bytes, little-endian, as an integer."""
    return int.from_bytes(encode(np.array([value]), dtype).tobytes(), "little")


def rounded(array: Any, dtype: str) -> Array:
    """Return the numbers that an array becomes in ``dtype``, floats in float64."""
    held = decode(encode(array, dtype), TensorType(dtype, np.shape(array)))
    return held.astype(np.float64) if held.dtype.kind == "f" else held


def item_bytes(dtype: str) -> int:
    """Return the bytes of one element."""
    return DTYPE_BYTES[dtype]
