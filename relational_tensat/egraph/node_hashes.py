"""Rows in arrays, found by what they are: their columns mixed into one number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.records import record

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
    return hash_columns([signatures, *children.T])


def hash_columns(columns: Sequence[Ints]) -> Hashes:
    """Return a number for each row: an e-node's signature and child classes, a column each."""
    total = columns[0].astype(np.uint64)
    total *= _FACTORS[0]
    for column, factor in zip(columns[1:], _FACTORS[1:], strict=False):
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


class HashesCollideError(Exception):
    """Two different e-nodes have one number: whoever meets it must tell them apart otherwise."""


@record
class Groups:
    """Rows that are equal.

    Attributes:
        hashes: of each group, in order.
        first: of each group, the place of its first row.
        of_row: the group of each row.
    """

    hashes: Hashes
    first: Places
    of_row: Ints


def equal_rows(hashes: Hashes, columns: Sequence[Ints]) -> Groups:
    """Return which rows, at least one, are equal.

    Raises:
        HashesCollideError: two different ones have one number.
    """
    order = np.argsort(hashes)
    in_order = hashes[order]
    starts_group = np.ones(len(order), np.bool_)
    np.not_equal(in_order[1:], in_order[:-1], out=starts_group[1:])
    continues = ~starts_group[1:]
    for column in columns:
        values = column[order]
        if ((values[1:] != values[:-1]) & continues).any():
            raise HashesCollideError
    starts = np.flatnonzero(starts_group)
    of_row = np.empty(len(order), np.int32)
    of_row[order] = np.cumsum(starts_group, dtype=np.int32) - 1
    return Groups(in_order[starts], np.minimum.reduceat(order, starts), of_row)


class HashedRows:
    """Rows that are all different, found by what they are.

    Raises:
        HashesCollideError: two of them have one number.
    """

    def __init__(self, columns: Sequence[Ints]) -> None:
        hashes = hash_columns(columns)
        self._columns = columns
        self._order = np.argsort(hashes)
        self._hashes = hashes[self._order]
        if (self._hashes[1:] == self._hashes[:-1]).any():
            raise HashesCollideError

    def find(self, hashes: Hashes, columns: Sequence[Ints]) -> Places:
        """Return the places of rows that are looked for; -1 where there is none.

        Args:
            hashes: the numbers of these rows, soonest found in their order.

        Raises:
            HashesCollideError: another row has the number of one that is looked for.
        """
        if not len(self._hashes):
            return np.full(len(hashes), -1, np.intp)
        at = np.searchsorted(self._hashes, hashes)
        at[at == len(self._hashes)] = 0
        found = np.flatnonzero(self._hashes[at] == hashes)
        places = self._order[at[found]]
        for own, wanted in zip(self._columns, columns, strict=True):
            if (own[places] != wanted[found]).any():
                raise HashesCollideError
        result = np.full(len(hashes), -1, np.intp)
        result[found] = places
        return result
