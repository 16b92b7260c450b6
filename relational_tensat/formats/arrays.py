"""Weight arrays: uniform ones stay one number, and bfloat16 is held as float32."""

from __future__ import annotations

import numpy as np

from relational_tensat.tensor.types import Array

#: From this many equal elements on, an array is kept (and written) as one number.
UNIFORM_MIN_ELEMENTS = 64
#: A tensor of more elements is no weight: going through them takes hours, though memory has only one.
UNIFORM_MOST_ELEMENTS = 1 << 32


def uniform_element(array: Array) -> Array | None:
    """Return the one value (0-d) that all of at least ``UNIFORM_MIN_ELEMENTS`` elements have.

    Elements are compared by their bytes: 0.0 and -0.0 differ, a NaN equals itself.
    Returns None when the array is smaller or its elements differ.
    """
    if array.size < UNIFORM_MIN_ELEMENTS:
        return None
    first = array[(0,) * array.ndim]
    if all(stride == 0 for stride in array.strides) or _all_equal(array, np.asarray(first)):
        return np.asarray(first)
    return None


def compact(array: Array) -> Array:
    """Return the array, as a broadcast view of one element when all are equal."""
    element = uniform_element(array)
    return array if element is None else np.broadcast_to(element, array.shape)


def _all_equal(array: Array, first: Array) -> bool:
    if array[(-1,) * array.ndim] != first and first == first:
        return False  # the usual case, without comparing every element
    flat = np.ascontiguousarray(array).reshape(-1)
    as_bytes = flat.view(np.uint8).reshape(flat.size, -1)
    return bool((as_bytes == as_bytes[0]).all())


def float_to_bfloat16_bits(array: Array) -> Array:
    """Return the bfloat16 bit patterns (uint16) of float32 values, rounded to nearest even."""
    bits = np.ascontiguousarray(array, dtype=np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    is_nan = np.isnan(array)
    return np.where(is_nan, (bits >> 16) | 0x40, rounded).astype(np.uint16)


def bfloat16_bits_to_float(bits: Array) -> Array:
    """Return the float32 values of bfloat16 bit patterns (uint16); exact."""
    return (bits.astype(np.uint32) << 16).view(np.float32)
