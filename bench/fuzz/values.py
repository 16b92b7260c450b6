"""Random numbers as models have them: ordinary ones, small integers, and the ends of their types."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]

#: How often a constant is made of special values, and how often all its elements are equal.
_SPECIAL, _UNIFORM = 0.15, 0.3


def drawn_array(
    random: np.random.Generator, dtype: np.dtype[np.generic], shape: tuple[int, ...]
) -> Array:
    """Return ordinary numbers: floats around 0, small integers, either truth value."""
    if dtype == np.bool_:
        return np.asarray(random.random(shape) < 0.5)
    if dtype.kind == "f":
        return np.asarray(random.normal(size=shape), dtype)
    low = 0 if dtype.kind == "u" else -5
    return np.asarray(random.integers(low, 6, shape), dtype)


def drawn_constant(
    random: np.random.Generator, dtype: np.dtype[np.generic], shape: tuple[int, ...]
) -> Array:
    """Return the elements of a constant: those that rules look for, and those that break them."""
    if random.random() < _UNIFORM:
        array = np.full(shape, drawn_array(random, dtype, ()))
    else:
        array = drawn_array(random, dtype, shape)
    if random.random() < _SPECIAL:
        values = special_values(dtype)
        return np.full(shape, values[random.integers(len(values))], dtype)
    return array


def special_values(dtype: np.dtype[np.generic]) -> Array:
    """Return numbers that laws have exceptions for: neutral ones, powers of 2, the type's ends."""
    if dtype == np.bool_:
        return np.array([False, True])
    if dtype.kind == "f":
        numbers = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.0, 1e-4, 300.0, 1e4]
        if dtype != np.float16:
            numbers += [1e8, 1e-30, 1e30, 12582912.0]
        return np.array(numbers, dtype)
    ends = np.iinfo(dtype.name)
    integers = [0, 1, 2, 3, 7, 64, 100, ends.max, ends.max - 1, ends.min]
    return np.array(integers + [-1, -2] * (dtype.kind == "i"), dtype)
