"""Where in a tensor of device memory a block's tile lies, as C spells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relational_tensat.mugraph.graph.dims import Dim, Dims, count, size_of
from relational_tensat.mugraph.graph.input_windows import Bound, source_of
from relational_tensat.mugraph.graph.mugraph import BlockGraph, Iterator, Saver
from relational_tensat.mugraph.graph.partial_tiles import Split
from relational_tensat.mugraph.kernels.lowering.formulas import joined
from relational_tensat.mugraph.kernels.lowering.layouts import (
    Layout,
    are_copied,
    row_major,
    sum_text,
)
from relational_tensat.mugraph.kernels.lowering.names import identifier
from relational_tensat.mugraph.kernels.lowering.statements import Compute, Program

#: Of what threads copy at once, the best first.
COPIED_BYTES = (16, 8, 4)
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
    starts = _starts(iterator, tile, block, blocks)
    if not iterator.windows:
        return _offset(starts, tensor)
    source = source_of(tensor, iterator.windows)
    text = sum_text((starts.get(name, "0"), stride) for name, stride in source.strides.items())
    return f"{text} + {source.start}" if source.start else text


def element_offset(iterator: Iterator, at: Mapping[str, str], tensor: Dims) -> str:
    """Return the offset of a tile's element from its first one.

    Args:
        iterator: the load.
        at: an index for each variable of the tile.
        tensor: dims in device memory, in their order there.
    """
    if not iterator.windows:
        return offset(at, tensor)
    strides = source_of(tensor, iterator.windows).strides
    return sum_text((at.get(name, "0"), stride) for name, stride in strides.items())


def inside(
    iterator: Iterator, tile: Dims, block: BlockGraph, blocks: Sequence[str], at: Mapping[str, str]
) -> str:
    """Return the condition that a tile's element is not 0 whatever the tensor has; empty for none.

    Args:
        iterator, tile, block, blocks: as for ``tile_start``.
        at: an index for each variable of the tile.
    """
    starts, conditions = _starts(iterator, tile, block, blocks), []
    for bound in _bounds(iterator):
        parts = [
            (sum_text([(starts[dim.variable], 1), (at[dim.variable], 1)]), dim.size)
            for dim in bound.dims
        ]
        index = joined([(f"({text})" if "+" in text else text, size) for text, size in parts])
        conditions += [f"({index}) >= {bound.first}"] if bound.first else []
        is_cut = bound.last < count(bound.dims)
        conditions += [f"({index}) < {bound.last}"] if is_cut else []
    return " && ".join(conditions)


def source_layout(iterator: Iterator, tensor: Dims) -> Layout:
    """Return how what an iterator loads lies in device memory, without its offset."""
    if not iterator.windows:
        return row_major(tensor)
    return Layout(source_of(tensor, iterator.windows).strides, count(tensor))


def load_width(
    iterator: Iterator, tensor: Dims, order: Dims, layout: Layout, item_bytes: int
) -> int:
    """Return how many elements of a tile threads copy at once: of 16, 8 or 4 bytes, or one.

    Of a window only where each row of it begins at a multiple of them, and nothing of it is 0; of tiles the
    last of which is smaller only where all of them exist, or none. Bools become numbers one by one.

    Args:
        iterator: the load.
        tensor: dims in device memory, in their order there.
        order: dims of the tile as threads go over them.
        layout: of the tile.
        item_bytes: of an element.
    """
    if iterator.is_condition:
        return 1
    widths = (size // item_bytes for size in COPIED_BYTES if size > item_bytes)
    return next((w for w in widths if _are_copied(w, iterator, tensor, order, layout)), 1)


def _are_copied(width: int, iterator: Iterator, tensor: Dims, order: Dims, layout: Layout) -> bool:
    """Return whether so many elements of a tile can be copied at once; see ``load_width``."""
    if not order or order[-1].whole % width:
        return False
    if not iterator.windows:
        return are_copied(width, tensor, order, layout)
    source = source_of(tensor, iterator.windows)
    if source.bounds or source.start % width or order[-1].size % width:
        return False
    inner, *others = sorted(source.strides.items(), key=lambda item: item[0] != order[-1].variable)
    is_even = inner == (order[-1].variable, 1) and all(stride % width == 0 for _, stride in others)
    return is_even and layout.moves(order[-1].variable, width, order)


def _bounds(iterator: Iterator) -> Sequence[Bound]:
    """Return what is 0 of windows: that does not depend on how the tensor lies."""
    bounds = []
    for window in iterator.windows:
        if window.is_bounded:
            dims = tuple(map(Dim, window.into, window.sizes))
            bounds.append(Bound(dims, window.first, window.last))
    return bounds


def _starts(
    iterator: Iterator, tile: Dims, block: BlockGraph, blocks: Sequence[str]
) -> dict[str, str]:
    """Return the index of a tile's first element along each of its variables."""
    starts = {}
    for dim in tile:
        parts = _axes(iterator.imap, dim.variable, block, blocks)
        if iterator.fmap == dim.variable and block.loop > 1:
            parts.append((ITERATION, block.loop))
        starts[dim.variable] = joined([*parts, ("0", dim.size)])
    return starts


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


def exists(dims: Dims, at: Mapping[str, str]) -> str:
    """Return the condition that an element of a tile is not beyond the end; empty where none is.

    Args:
        dims: of the tile.
        at: an index for each variable.
    """
    return " && ".join(f"{at[d.variable]} < {end_name(d.variable)}" for d in dims if d.whole)


def end_name(variable: str) -> str:
    """Return the name of how many values of a variable there are from a tile's first one on."""
    return f"end_{identifier(variable)}"


def ends(
    partial: Mapping[str, Split], block: BlockGraph, blocks: Sequence[str], in_loop: bool
) -> dict[str, str]:
    """Return how many values of each variable there are from a tile's first one on.

    Args:
        partial: the splits whose last tile is smaller.
        block, blocks: as for ``tile_start``.
        in_loop: those that the loop splits, or the others.
    """
    result = {}
    for name, split in partial.items():
        if split.is_in_loop is not in_loop:
            continue
        parts = [(blocks[axis], block.grid[axis]) for axis in split.axes]
        parts += [(ITERATION, block.loop)] if in_loop else []
        result[name] = f"{split.whole} - {joined([*parts, ('0', split.tile)])}"
    return result


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


def written_index(program: Program, compute: Compute, at: Mapping[str, str]) -> Mapping[str, str]:
    """Return the index at which an element is written: in the whole, of which an iteration has a part."""
    if not compute.along:
        return at
    size = size_of(program.dims[compute.operand], compute.along)
    return {**at, compute.along: f"({ITERATION} * {size} + {at[compute.along]})"}
