"""Random functions in place of operators whose meaning is unknown.

A law that rewrites what is around such an operator holds whatever it computes, so any function of its
inputs shows a mistake there. These are smooth, so that rounding before them stays rounding behind them,
and every element of a result depends on elements of all inputs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relational_tensat.tensor import DTYPE_BYTES, Array, TensorType, numpy_dtype

#: Coefficients are repeated after so many, as drawing more takes longer than using them; a prime.
_BLOCK = 262_147
#: A value whose elements are not known, or are no numbers, is represented by so many numbers.
_FEATURES = 64


def stand_in(name: str, operands: Sequence[Any], kinds: Sequence[TensorType]) -> tuple[Array, ...]:
    """Return what a random function of some operands gives.

    Args:
        name: of the function; the same name and operands give the same results.
        operands: arrays, or what else an operator may take.
        kinds: of the results.

    Returns:
        Floats in float64, about as large as the operands; integers 0 or 1; for a value that is no
        tensor of numbers, a vector of floats.
    """
    digest = hashlib.sha256(name.encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:16], "big"))
    flat = [numbers for numbers in map(_numbers, operands) if numbers.size]
    return tuple(_result(rng, flat, kind) for kind in kinds)


def _result(
    rng: np.random.Generator, operands: Sequence[NDArray[np.float64]], kind: TensorType
) -> Array:
    is_tensor = kind.dtype in DTYPE_BYTES
    size = kind.size if is_tensor else _FEATURES
    total = _coefficients(rng, size)
    for operand in operands:
        total = total + _coefficients(rng, size) * _spread(
            operand * _coefficients(rng, operand.size), size
        )
    total /= np.sqrt(len(operands) + 1)
    if not is_tensor:
        return _nonlinear(total)
    if kind.is_float:
        return _nonlinear(total).reshape(kind.shape)
    return (total > 0).astype(numpy_dtype(kind.dtype)).reshape(kind.shape)


def _nonlinear(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a function of numbers that is neither linear nor flat anywhere."""
    return numbers + 0.5 * np.sin(numbers)


def _coefficients(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Draw numbers of either sign, none of which is near 0."""
    block = min(count, _BLOCK)
    block_values = (rng.random(block) + 0.5) * rng.choice((-1.0, 1.0), block)
    return np.resize(block_values, count)


def _spread(numbers: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return so many numbers, each of the original ones part of them."""
    if numbers.size <= size or size == 0:
        return np.resize(numbers, size)
    rows = -(-numbers.size // size)
    matrix_values = np.zeros(rows * size)
    matrix_values[: numbers.size] = numbers
    spread: NDArray[np.float64] = matrix_values.reshape(rows, size).sum(axis=0) / np.sqrt(rows)
    return spread


def _numbers(value: Any) -> NDArray[np.float64]:
    """Return a value as numbers: those of a sequence one after the other, a hash for a text."""
    if isinstance(value, list | tuple):
        return np.concatenate([np.zeros(0), *map(_numbers, value)])
    array = np.asarray(value)
    if array.dtype.kind in "biuf":
        return array.astype(np.float64).reshape(-1)
    return np.array([_hash(str(item)) for item in array.flat])


def _hash(text: str) -> float:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2.0**31 - 1.0
