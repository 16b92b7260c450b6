"""Index variables of a model's dims, found by what operators do with them.

A dim is a sequence of atoms, the slowest first; a reshape that merges dims makes a longer sequence, one
that splits a dim splits atoms, everywhere at once. What an operator aligns is the same atom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from relational_tensat.base.errors import ShapeError

#: A dim: its atoms; none for a dim of size 1.
Atoms: TypeAlias = tuple[int, ...]


class IndexAtoms:
    """All atoms of a region: their sizes, and what became of those that were split or identified."""

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._became: dict[int, Atoms] = {}

    def copy(self) -> IndexAtoms:
        """Return the same atoms, to be split and identified apart from these."""
        other = IndexAtoms()
        other._sizes, other._became = list(self._sizes), dict(self._became)
        return other

    def new(self, size: int) -> Atoms:
        """Return a dim of a new atom."""
        if size == 1:
            return ()
        self._sizes.append(size)
        return (len(self._sizes) - 1,)

    def size(self, dim: Atoms) -> int:
        """Return the number of values of a dim."""
        return math.prod(self._sizes[atom] for atom in dim)

    def resolved(self, dim: Atoms) -> Atoms:
        """Return a dim by the atoms that there are now."""
        result: list[int] = []
        for atom in dim:
            result += self.resolved(self._became[atom]) if atom in self._became else [atom]
        return tuple(result)

    def identify(self, one: Atoms, other: Atoms) -> None:
        """Let two dims be the same.

        Raises:
            ShapeError: their sizes have no common factors to split by.
        """
        first, second = list(self.resolved(one)), list(self.resolved(other))
        while first and second:
            a, b = first[0], second[0]
            if a == b:
                first, second = first[1:], second[1:]
            elif self._sizes[a] == self._sizes[b]:
                self._became[b] = (a,)
            elif self._sizes[a] < self._sizes[b]:
                self._split(b, self._sizes[a])
            else:
                self._split(a, self._sizes[b])
            first, second = list(self.resolved(tuple(first))), list(self.resolved(tuple(second)))
        if first or second:
            raise ShapeError("dims of different sizes are aligned")

    def regrouped(self, dims: Sequence[Atoms], shape: Sequence[int]) -> list[Atoms]:
        """Return the dims of a reshape.

        Raises:
            ShapeError: an atom would have to be split by a number that does not divide it.
        """
        flat = list(self.resolved(tuple(atom for dim in dims for atom in dim)))
        result = []
        for size in shape:
            group: list[int] = []
            while self.size(tuple(group)) < size:
                need = size // self.size(tuple(group))
                if self._sizes[flat[0]] > need:
                    self._split(flat[0], need)
                    flat = list(self.resolved(tuple(flat)))
                group.append(flat.pop(0))
            if self.size(tuple(group)) != size:
                raise ShapeError(f"a reshape to {tuple(shape)} cuts across dims")
            result.append(tuple(group))
        return result

    def _split(self, atom: int, first: int) -> None:
        if self._sizes[atom] % first:
            raise ShapeError(f"a dim of {self._sizes[atom]} would be split by {first}")
        self._became[atom] = (*self.new(first), *self.new(self._sizes[atom] // first))
