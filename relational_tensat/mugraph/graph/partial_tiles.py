"""Tiles whose size does not divide their tensor's: the last one is smaller.

Of n values in p parts each tile has t = ceil(n / p), the last one n - (p - 1) t, at least one. Elements
beyond the end do not exist: nothing is read or written there, sums leave them out, and what is concatenated
is cut. Wherever a tile is computed as if it were whole, it has copies of the tensor's last element there.
So functions and quotients are defined where they are defined of real elements, and the largest element is
the right one; only sums have to leave them out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.arithmetic import Labelled
from relational_tensat.mugraph.graph.dims import Dim, Dims, windowed
from relational_tensat.mugraph.graph.mugraph import AXES, BlockGraph, InputIterator

#: The label of a loop's iterations, and those of a grid's axes.
LOOP = "@loop"
GRID = tuple(f"@{axis}" for axis in AXES)


@dataclass(frozen=True, slots=True)
class TileSplit:
    """How grid and loop split a variable of a tensor.

    Attributes:
        whole: its size in device memory.
        tile: its size in a block and an iteration.
        parts: the labels of what splits it, the slowest first, each with its extent.
    """

    variable: str
    whole: int
    tile: int
    parts: tuple[tuple[str, int], ...]

    @property
    def is_partial(self) -> bool:
        """Whether the last tile is smaller."""
        return self.count * self.tile != self.whole

    @property
    def count(self) -> int:
        """How many tiles there are."""
        return math.prod(extent for _, extent in self.parts)

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of the grid that split it."""
        return tuple(
            GRID.index(label) for label, extent in self.parts if label in GRID and extent > 1
        )

    @property
    def is_in_loop(self) -> bool:
        """Whether the loop splits it."""
        return (LOOP, 1) not in self.parts and any(label == LOOP for label, _ in self.parts)

    def exists(self, x: Labelled) -> np.ndarray | None:
        """Return which elements of a tensor are no copies; None if all are, for all sizes of tiles.

        They are where the variable, or what splits it, has been put together.
        """
        labels = [label for label, _ in self.parts]
        if not {*labels, self.variable} <= set(x.labels) or x.size(self.variable) != self.tile:
            return None
        index = np.zeros((), np.int64)
        for label, extent in (*self.parts, (self.variable, self.tile)):
            shape = [1] * x.data.ndim
            shape[x.axis(label)] = extent
            index = index * extent + np.arange(extent).reshape(shape)
        return np.asarray(index < self.whole)


def splits_of(
    iterator: InputIterator, dims: Dims, block: BlockGraph, where: str
) -> list[TileSplit]:
    """Return how a block's grid and loop split the variables of a tensor.

    Args:
        iterator: the maps.
        dims: of what all blocks together load of the tensor in device memory.
        block: the grid and the loop.
        where: the kernel, for errors.

    Raises:
        InputError: a map names no variable of the tensor, or there are more parts than tiles with elements.
    """
    if len(iterator.imap) != len(block.grid):
        raise InputError(
            f"{where}: {iterator.tensor} has {len(iterator.imap)} maps for {block.grid}"
        )
    sizes = {dim.variable: dim.size for dim in dims}
    result = []
    for variable in dict.fromkeys([*iterator.imap, iterator.fmap]):
        if not variable:
            continue
        if variable not in sizes:
            raise InputError(f"{where}: {iterator.tensor} has no dim {variable!r}")
        parts = [
            (GRID[axis], extent)
            for axis, (mapped, extent) in enumerate(zip(iterator.imap, block.grid, strict=True))
            if mapped == variable
        ]
        if iterator.fmap == variable:
            parts.append((LOOP, block.loop))
        tile = tile_size(sizes[variable], math.prod(extent for _, extent in parts))
        if not tile:
            count = math.prod(extent for _, extent in parts)
            raise InputError(
                f"{where}: {iterator.tensor}: of {count} parts of {variable}={sizes[variable]} "
                "some have no element"
            )
        result.append(TileSplit(variable, sizes[variable], tile, tuple(parts)))
    return result


def tile_size(size: int, parts: int) -> int:
    """Return the size of tiles, of which only the last may be smaller; 0 where it would have no element."""
    tile = -(-size // parts)
    return tile if (parts - 1) * tile < size else 0


def partial_splits(
    block: BlockGraph, device: Mapping[str, Dims], where: str = ""
) -> dict[str, TileSplit]:
    """Return the splits of a block whose last tile is smaller, by variable.

    Raises:
        InputError: a map is wrong, or two tensors split such a variable in two ways.
    """
    splits = [
        split
        for it in block.iterators
        for split in splits_of(it, windowed(device[it.tensor], it.windows), block, where)
    ]
    partial = {split.variable: split for split in splits if split.is_partial}
    for split in splits:
        if partial.get(split.variable, split) != split:
            raise InputError(
                f"{where}: {split.variable} has a smaller last tile, and is split in two ways"
            )
    return partial


def sized_tile(dims: Dims, splits: Sequence[TileSplit]) -> Dims:
    """Return the dims of a tile."""
    by_name = {split.variable: split for split in splits}
    return tuple(_tile_dim(dim, by_name.get(dim.variable)) for dim in dims)


def _tile_dim(dim: Dim, split: TileSplit | None) -> Dim:
    if split is None:
        return dim
    return Dim(dim.variable, split.tile, split.whole if split.is_partial else 0)


def only_existing(x: Labelled, over: Sequence[str], partial: Mapping[str, TileSplit]) -> Labelled:
    """Return a tensor with zeros instead of copies beyond the end of some variables."""
    data = x.data
    for variable in over:
        exists = partial[variable].exists(x) if variable in partial else None
        if exists is not None:
            data = np.where(exists, data, data.dtype.type(0))
    return Labelled(x.labels, data)
