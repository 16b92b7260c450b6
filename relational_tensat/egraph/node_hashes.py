"""Rows in arrays, found by what they are: their columns mixed into one number."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Hashes = NDArray[np.uint64]
Places = NDArray[np.intp]
Integers = TypeVar("Integers", bound=np.signedinteger[Any])

#: Odd factors that mix the columns of an e-node into one number; any will do.
_FACTORS = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93,
     0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53], dtype=np.uint64
)  # fmt: skip


def hashed(signatures: Ints, children: Ints) -> Hashes:
    """Return a number for each e-node: its signature, and its child classes, a row each."""
    total = signatures.astype(np.uint64)
    total *= _FACTORS[0]
    for column, factor in zip(children.T, _FACTORS[1:], strict=False):
        total ^= total >> np.uint64(29)
        total += column.astype(np.uint64)
        total *= factor
    total ^= total >> np.uint64(32)
    return total


def distinct(values: NDArray[Integers]) -> NDArray[Integers]:
    """Return the different values, in order. (``np.unique`` imports ``numpy.ma``, for 8 ms.)"""
    in_order = np.sort(values)
    is_first = np.ones(len(in_order), np.bool_)
    np.not_equal(in_order[1:], in_order[:-1], out=is_first[1:])
    return in_order[is_first]
