"""Masks: which of some worlds has which e-node, a bit each."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np
from numpy.typing import NDArray

from relational_tensat.explore.worlds.node_arrays import Ints

Bits = NDArray[np.uint64]
Flags = NDArray[np.bool_]

#: Worlds in a word of a mask.
WORD = 64


def unpacked(bits: Bits, worlds: int) -> Flags:
    """Return masks as flags: a row each, a column for each world."""
    flags = np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little", count=worlds)
    return flags.view(np.bool_)


def some_world(bits: Bits) -> Flags:
    """Return, for each mask, whether any world is in it (word by word: rows are short)."""
    words = np.zeros(len(bits), np.uint64)
    for word in range(bits.shape[1]):
        words |= bits[:, word]
    return np.asarray(words != 0)


def packed(flags: NDArray[np.bool_ | np.uint8]) -> Bits:
    """Return rows of flags as masks."""
    words = -(-flags.shape[1] // WORD)
    wide = np.zeros((len(flags), WORD * words), np.uint8)
    wide[:, : flags.shape[1]] = flags
    bits: Bits = np.packbits(wide, axis=1, bitorder="little").view(np.uint64)
    return bits


class Masks:
    """The e-nodes of worlds side by side.

    Row 0 stands for no e-node, which every world has: lists of e-nodes are filled up with zeros.

    Attributes:
        worlds: how many there are.
        bits: a mask for each e-node, by id.
    """

    def __init__(self, members: Sequence[Ints], size: int) -> None:
        """Begin with the e-nodes of each world.

        Args:
            members: by world.
            size: one more than the highest id of an e-node.
        """
        self.worlds = len(members)
        flags = np.zeros((size, self.worlds), np.bool_)
        for world, enodes in enumerate(members):
            flags[enodes, world] = True
        self.bits: Bits = packed(flags)
        self.bits[0] = ~np.uint64(0)

    def only(self, worlds: Flags) -> Masks:
        """Return the masks of some worlds: the others have nothing."""
        some = copy(self)
        some.bits = self.bits & packed(worlds[None, :])
        return some

    def follow(self, became: Ints) -> None:
        """Grow with the universe, and let e-nodes that stand for equal ones be where any of these was.

        Args:
            became: by id, the e-node that it is by now.
        """
        old = len(self.bits)
        bits = np.zeros((len(became), self.bits.shape[1]), np.uint64)
        bits[:old] = self.bits
        gone = np.flatnonzero((became[:old] != np.arange(old)) & some_world(self.bits[:old]))
        for enode in gone.tolist():
            bits[became[enode]] |= bits[enode]
        bits[gone] = 0
        bits[0] = ~np.uint64(0)
        self.bits = bits

    def have_all(self, enodes: Ints) -> Bits:
        """Return, for each row of e-nodes (0 fills it up), the mask of the worlds that have all of it."""
        mask: Bits = self.bits.take(enodes[:, 0], axis=0)
        for column in range(1, enodes.shape[1]):
            others = enodes[:, column]
            if others.any():
                mask &= self.bits.take(others, axis=0)
        return mask

    def enter(self, enodes: Ints, world: int) -> None:
        """Let e-nodes come into a world: several times the same one, or 0."""
        word, bit = divmod(world, WORD)
        self.bits[enodes.ravel(), word] |= np.uint64(1 << bit)

    def sizes(self) -> Ints:
        """Return how many e-nodes each world has."""
        rows = self.bits[1:]
        sizes: Ints = unpacked(rows[some_world(rows)], self.worlds).sum(axis=0, dtype=np.int32)
        return sizes

    def membership(self, worlds: NDArray[np.intp]) -> Flags:
        """Return whether some worlds have e-nodes: a row for each world, by id; 0 is in each."""
        flags = unpacked(self.bits, self.worlds)
        flags[0] = True
        return np.ascontiguousarray(flags[:, worlds].T)

    def members(self, world: int) -> Ints:
        """Return the e-nodes of a world, in the order of their ids."""
        word, bit = divmod(world, WORD)
        column = (self.bits[1:, word] >> np.uint64(bit)) & np.uint64(1)
        return (np.flatnonzero(column) + 1).astype(np.int32)
