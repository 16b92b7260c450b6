"""Where in a tensor of device memory a block's tile lies, as C spells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relational_tensat.mugraph.graph.dims import Dims, size_of
from relational_tensat.mugraph.graph.mugraph import BlockGraph, Iterator, Saver
from relational_tensat.mugraph.kernels.lowering.formulas import joined
from relational_tensat.mugraph.kernels.lowering.layouts import row_major, sum_text

#: The name of the loop's counter.
ITERATION = "iteration"


def tile_start(
    iterator: Iterator, tensor: Dims, tile: Dims, block: BlockGraph, blocks: Sequence[str]
) -> str:
    """Return the offset of a tile's first element in elements.

    Args:
        iterator: the maps.
        tensor: dims in device memory, in their order there.
        tile: dims of the tile.
        block: the grid and the loop.
        blocks: how the target calls the block's index along each axis of the grid.
    """
    starts = {}
    for dim in tile:
        parts = _axes(iterator.imap, dim.variable, block, blocks)
        if iterator.fmap == dim.variable and block.loop > 1:
            parts.append((ITERATION, block.loop))
        starts[dim.variable] = joined([*parts, ("0", dim.size)])
    return _offset(starts, tensor)


def result_start(
    saver: Saver, result: Dims, tile: Dims, block: BlockGraph, blocks: Sequence[str]
) -> str:
    """Return the offset in the result where a block's part of it begins, in elements.

    Args:
        saver: the maps.
        result: dims in device memory.
        tile, block, blocks: as for ``tile_start``.
    """
    starts = {}
    for dim in result:
        parts = _axes(saver.omap, dim.variable, block, blocks)
        starts[dim.variable] = joined([*parts, ("0", size_of(tile, dim.variable))])
    return _offset(starts, result)


def offset(at: Mapping[str, str], tensor: Dims) -> str:
    """Return the offset of an element from there; variables that the tile lacks are 0."""
    return _offset({dim.variable: at.get(dim.variable, "0") for dim in tensor}, tensor)


def _axes(
    maps: Sequence[str], variable: str, block: BlockGraph, blocks: Sequence[str]
) -> list[tuple[str, int]]:
    return [
        (blocks[axis], extent)
        for axis, (mapped, extent) in enumerate(zip(maps, block.grid, strict=True))
        if mapped == variable and extent > 1
    ]


def _offset(at: Mapping[str, str], dims: Dims) -> str:
    strides = row_major(dims).strides
    return sum_text((at[dim.variable], strides[dim.variable]) for dim in dims)
