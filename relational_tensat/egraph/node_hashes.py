"""E-nodes in arrays, found by what they are: signature and child classes mixed into one number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Hashes = NDArray[np.uint64]

#: Odd factors that mix the columns of an e-node into one number; any will do.
_FACTORS = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93,
     0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53], dtype=np.uint64
)  # fmt: skip


def hashed(signatures: Ints, children: Ints) -> Hashes:
    """Return a number for each e-node: its signature, and its child classes, a row each."""
    total = signatures.astype(np.uint64) * _FACTORS[0]
    for column in range(children.shape[1]):
        total ^= total >> np.uint64(29)
        total += children[:, column].astype(np.uint64)
        total *= _FACTORS[1 + column]
    hashes: Hashes = total ^ (total >> np.uint64(32))
    return hashes


class HashesCollideError(Exception):
    """Two different e-nodes have one number: whoever meets it must tell them apart otherwise."""


class HashedNodes:
    """E-nodes, each with a class, found by signature and child classes.

    Raises:
        HashesCollideError: two of them have one number.
    """

    def __init__(self, signatures: Ints, children: Ints, classes: Ints) -> None:
        hashes = hashed(signatures, children)
        order = np.argsort(hashes)
        self._hashes = hashes[order]
        self._signatures, self._children = signatures[order], children[order]
        self._classes = classes[order]
        if (self._hashes[1:] == self._hashes[:-1]).any():
            raise HashesCollideError

    def classes(self, hashes: Hashes, signatures: Ints, children: Ints) -> Ints:
        """Return the classes of e-nodes that are looked for; 0 where there is none.

        Raises:
            HashesCollideError: another e-node has the number of one that is looked for.
        """
        if not len(self._hashes):
            return np.zeros(len(hashes), np.int32)
        places = np.searchsorted(self._hashes, hashes)
        places[places == len(self._hashes)] = 0
        found = np.flatnonzero(self._hashes[places] == hashes)
        at = places[found]
        if (self._signatures[at] != signatures[found]).any() or (
            self._children[at] != children[found]
        ).any():
            raise HashesCollideError
        classes = np.zeros(len(hashes), np.int32)
        classes[found] = self._classes[at]
        return classes
