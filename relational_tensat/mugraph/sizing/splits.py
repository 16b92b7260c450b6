"""Into how many parts the grid and the loop of a kernel may split their variables.

By powers of two; what these do not divide by other divisors, too, or into tiles the last of which is
smaller.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.dims import Dim, Dims
from relational_tensat.mugraph.graph.mugraph import Accumulate, Kernel
from relational_tensat.mugraph.graph.partial_tiles import tile_size
from relational_tensat.mugraph.graph.well_formed import block_tensors
from relational_tensat.mugraph.search.found import FoundKernel
from relational_tensat.mugraph.sizing.choices import Floats, Sizes

#: No axis of a grid, and no loop, is longer.
_LONGEST = 1024
#: Where fewer powers of two divide a size, its other divisors are tried, too.
_FEW_POWERS = 3
#: Tiles whose last one may be smaller have at most so many elements, powers of two, and at least 8.
_LONGEST_TILE = 1024
SHORTEST_TILE = 8


@dataclass(frozen=True, slots=True)
class KernelSplits:
    """All choices for a kernel.

    Attributes:
        kernel: without sizes.
        step: the same with one part of each variable.
        names: the variables of the grid's axes, then the loop's, if it has one.
        rows: a choice a row: into how many parts each of them is split.
        is_smaller: of each choice, whether some last tile is smaller.
    """

    kernel: FoundKernel
    step: Kernel
    names: tuple[str, ...]
    rows: NDArray[np.int64]
    is_smaller: NDArray[np.bool_]

    def of(self, row: int) -> tuple[tuple[int, ...], int]:
        """Return the grid and the loop of a choice."""
        parts = tuple(int(n) for n in self.rows[row])
        axes = len(self.kernel.grid)
        return parts[:axes], parts[axes] if self.kernel.loop else 1

    @property
    def made(self) -> dict[str, int]:
        """The variables that count partial results of the kernel, each with its axis of the grid."""
        omaps = (enumerate(saver.omap) for saver in self.step.block.savers)
        return {v: axis for omap in omaps for axis, v in omap if v not in self.kernel.grid}

    def sizes(self, extents: Sequence[Mapping[str, int]]) -> Sizes:
        """Return all choices at some sizes of variables, then all at the next, and so on."""
        count, times = len(self.rows), len(extents)
        whole = {
            name: np.repeat(np.array([of[name] for of in extents], np.float64), count)
            for name in (extents[0] if extents else ())
        }
        table = np.tile(self.rows.astype(np.float64), (times, 1))
        tile = dict(whole)
        for column, name in enumerate(self.names):
            tile[name] = tile[name] / table[:, column]
        tile = {name: np.ceil(size) for name, size in tile.items()}
        axes, loop = len(self.kernel.grid), np.ones(count * times)
        after = dict(tile)
        if self.kernel.loop:
            loop = table[:, axes]
        if _concatenates(self.step):
            name = self.kernel.loop
            after[name] = np.minimum(tile[name] * loop, whole[name])
        blocks: Floats = np.prod(table[:, :axes], axis=1)
        return Sizes(whole, tile, after, blocks, loop)


def kernel_splits(
    kernel: FoundKernel, step: Kernel, device: Mapping[str, Dims], given: Mapping[str, int]
) -> KernelSplits:
    """Return all choices for a kernel; none where it splits what is no variable of the program.

    Args:
        kernel: without sizes.
        step: with one part of each variable.
        device: dims of tensors in device memory then.
        given: sizes of the program's variables.
    """
    names = (*kernel.grid, *([kernel.loop] if kernel.loop else []))
    rows: list[tuple[int, ...]] = []
    if given.keys() >= set(names):
        free = _free_of_divisors(step, kernel, device, given)
        choices = [
            [*_parts_of(given[name]), *(more_parts_of(given[name]) if name in free else ())]
            for name in names
        ]
        rows = [row for row in itertools.product(*choices) if _fits(names, row, given, free)]
    smaller = [
        any(given[name] % parts for name, parts in _total_parts(names, row).items()) for row in rows
    ]
    table = np.array(rows, np.int64).reshape(len(rows), len(names))
    return KernelSplits(kernel, step, names, table, np.array(smaller, np.bool_))


def _parts_of(size: int) -> list[int]:
    """Return into how many parts something may be split: powers of two, and all of it; not one part.

    What has too few powers of two may be split by any of its divisors.
    """
    powers = [1 << n for n in range(1, _LONGEST.bit_length()) if size % (1 << n) == 0]
    if len(powers) < _FEW_POWERS:
        return [n for n in range(2, min(size, _LONGEST) + 1) if size % n == 0]
    return powers if size in powers or size > _LONGEST else [*powers, size]


def more_parts_of(size: int) -> list[int]:
    """Return into how many parts something may be split whose last one is smaller.

    Of tiles of a power of two as many as are needed: each has at least one element.
    """
    tiles = [1 << n for n in range(_LONGEST_TILE.bit_length())]
    parts = {-(-size // tile) for tile in tiles if SHORTEST_TILE <= tile < size}
    return sorted(n for n in parts if size % n and n <= _LONGEST)


def _free_of_divisors(
    kernel: Kernel, found: FoundKernel, device: Mapping[str, Dims], sizes: Mapping[str, int]
) -> list[str]:
    """Return the variables whose last tile may be smaller: no step has to have all tiles alike.

    Args:
        kernel: the kernel with one part of each variable.
        found: the same without sizes.
        device: dims of tensors in device memory.
        sizes: of variables; what powers of two divide is left as it is.
    """
    result = []
    split = dict.fromkeys([*found.grid, *([found.loop] if found.loop else [])])
    for name in (name for name in split if more_parts_of(sizes[name])):
        grid, loop = (
            tuple(2 if v == name else 1 for v in found.grid),
            2 if found.loop == name else 1,
        )
        size = 2 * math.prod(grid) * loop - 1
        dims = {
            tensor: tuple(
                Dim(d.variable, size if d.variable == name else d.size) for d in of_tensor
            )
            for tensor, of_tensor in device.items()
        }
        block = replace(kernel.block, grid=grid, loop=loop, savers=())
        try:
            block_tensors(Kernel(kernel.name, block), dims)
        except InputError:
            continue
        result.append(name)
    return result


def _total_parts(names: Sequence[str], row: Sequence[int]) -> dict[str, int]:
    """Return into how many parts each variable is split by all axes and the loop together."""
    total: dict[str, int] = {}
    for name, parts in zip(names, row, strict=True):
        total[name] = total.get(name, 1) * parts
    return total


def _fits(
    names: Sequence[str], row: Sequence[int], sizes: Mapping[str, int], free: Collection[str]
) -> bool:
    """Whether splits divide sizes, or leave an element to each tile of what need not be divided."""
    return all(
        sizes[name] % parts == 0 or (name in free and tile_size(sizes[name], parts) > 0)
        for name, parts in _total_parts(names, row).items()
    )


def _concatenates(kernel: Kernel) -> bool:
    return any(isinstance(s, Accumulate) and s.kind == "concat" for s in kernel.block.steps)
