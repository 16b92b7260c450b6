"""Tiles of a kernel for a processor with caches: along what lies side by side in memory.

A grid is a GPU's. Where no block reads another's elements, a kernel is taken as a whole, and cut along any
variables that all results have and that nothing is reduced over. Each result and each large operand is cut
so that whole cache lines of it are moved. The variable that lies innermost in most of them is innermost in
all sweeps, so these are vectors.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.dims import Dim, Dims, count, variables, without
from relational_tensat.mugraph.graph.mugraph import Kernel, Operation
from relational_tensat.mugraph.graph.rewrites import flat_steps
from relational_tensat.mugraph.graph.validity import block_tensors, loaded_dims
from relational_tensat.mugraph.kernels.indices import source_layout
from relational_tensat.mugraph.kernels.layouts import row_major
from relational_tensat.mugraph.kernels.statements import Load, Program, Reduce, Save

#: Elements of a cache line.
LINE = 16
#: Lines that are moved one behind the other if rows lie far apart, the most that fit: a matrix is turned
#: ten times as fast by four as by one. Elements ahead of a line are fetched with it, and far rows share
#: sets.
_LINES_AT_ONCE = (4, 2, 1)
#: The most elements of a tile, in a second-level cache; then less, where several tiles are no stack.
MOST_ELEMENTS = (16384, 4096, 0)
#: Of a tile: half of a first-level cache; with sums beside each other, which want long rows, more.
_TILE_ELEMENTS, _LONG_TILE_ELEMENTS = 4096, 8192


@dataclass(frozen=True, slots=True)
class CpuTiles:
    """How loops go over a kernel's variables.

    Attributes:
        sizes: of the tiles along each variable that is cut.
        order: of all variables, the innermost last.
    """

    sizes: Mapping[str, int]
    order: tuple[str, ...]

    @property
    def lane(self) -> str:
        """The innermost variable, or ""."""
        return self.order[-1] if self.order else ""

    def dims(self, dims: Dims) -> Dims:
        """Return the dims of a tensor's tile, in the order of loops."""
        place = {name: number for number, name in enumerate(self.order)}
        return tuple(sorted(map(self._cut, dims), key=lambda dim: place.get(dim.variable, -1)))

    def _cut(self, dim: Dim) -> Dim:
        size = self.sizes.get(dim.variable, dim.size)
        return Dim(dim.variable, size, dim.size if dim.size % size else 0)

    def count(self, dims: Dims) -> int:
        """Return how many elements the tile of a tensor has."""
        return math.prod(self.sizes.get(dim.variable, dim.size) for dim in dims)


def as_one_block(kernel: Kernel, device: Mapping[str, Dims]) -> Kernel | None:
    """Return a kernel whose only block computes all; None where blocks are not just parts of that.

    Args:
        kernel: the kernel.
        device: the dims of its operands.
    """
    block = kernel.block
    steps = flat_steps(block.steps)
    if block.loop != 1 or not all(isinstance(step, Operation) for step in steps):
        return None
    named = named_by(steps)
    for axis, extent in enumerate(block.grid):
        maps = {it.imap[axis] for it in block.iterators} | {s.omap[axis] for s in block.savers}
        if extent > 1 and (len(maps - {""}) != 1 or maps & named):
            return None
        for iterator in block.iterators:
            own = variables(loaded_dims(iterator, device, kernel.name))
            if extent > 1 and not iterator.imap[axis] and maps & set(own):
                return None
    iterators = tuple(replace(it, imap=(), fmap="") for it in block.iterators)
    savers = tuple(replace(saver, omap=()) for saver in block.savers)
    whole = replace(block, grid=(), iterators=iterators, savers=savers)
    try:
        block_tensors(replace(kernel, block=whole), device)
    except InputError:
        return None
    return replace(kernel, block=whole)


def tiles_of(program: Program, lying: Mapping[str, Dims], most_elements: int) -> CpuTiles:
    """Return how a kernel of one block is cut.

    Args:
        program: the kernel.
        lying: the dims of operands and results in their order in memory.
        most_elements: of a tile, if whole lines can be moved so.
    """
    statements = [each for stage in program.statements.values() for each in stage]
    accesses = list(_accesses(statements, program, lying))
    taps = taps_of(program)
    tiled = [without(dims, taps) for dims in program.dims.values()]  # of taps nothing is stored
    order = _order(accesses, program)
    free = _free(program)
    sizes = {dim.variable: dim.size for dims in program.dims.values() for dim in dims}
    tiles = CpuTiles(dict.fromkeys(free, 1), order)
    largest = max((access.elements for access in accesses), default=0)
    large = [access for access in accesses if access.elements * 8 >= largest]
    whole = tiles
    for lines in _LINES_AT_ONCE:
        tiles = whole
        for access in large:
            is_turned = access.strides.get(whole.lane, 1) != 1
            tiles = _with_lines(tiles, access, sizes, LINE * lines if is_turned else LINE)
        if max(map(tiles.count, tiled), default=1) <= most_elements:
            break
    sums = any(isinstance(each, Reduce) for each in statements)
    budget = min(most_elements, _LONG_TILE_ELEMENTS if sums else _TILE_ELEMENTS)
    if sums and tiles.lane not in free:
        return tiles
    for name in reversed(order):
        if name in free:
            alone = replace(tiles, sizes={**tiles.sizes, name: 1})
            room = budget // max(map(alone.count, tiled), default=1)
            room -= room % LINE if room > LINE else 0
            size = min(sizes[name], max(tiles.sizes[name], room))
            tiles = replace(tiles, sizes={**tiles.sizes, name: size})
        if tiles.sizes.get(name, sizes[name]) < sizes[name]:
            break
    return tiles


@dataclass(frozen=True, slots=True)
class _Access:
    """A load or a save: the stride of each variable with several values, and its elements.

    Attributes:
        reads: how often each is read, as taps of windows.
    """

    strides: Mapping[str, int]
    elements: int
    reads: int = 1


def _accesses(
    statements: Sequence[object], program: Program, lying: Mapping[str, Dims]
) -> Iterator[_Access]:
    for statement in statements:
        match statement:
            case Load(iterator):
                layout = source_layout(iterator, lying[iterator.tensor])
                dims = program.dims[iterator.output]
            case Save(saver):
                layout, dims = row_major(lying[saver.output]), program.dims[saver.tile]
            case _:
                continue
        taps = taps_of(program) & set(variables(dims))
        reads = math.prod(dim.size for dim in dims if dim.variable in taps)
        real = [dim for dim in without(dims, taps) if dim.size > 1]
        strides = {dim.variable: layout.strides[dim.variable] for dim in real}
        yield _Access(strides, count(tuple(real)), reads)


def taps_of(program: Program) -> frozenset[str]:
    """Return the variables of what windows show that slide, which are summed over."""
    named = named_by(flat_steps(program.block.steps))
    windows = [w for it in program.block.iterators for w in it.windows if w.strides]
    return frozenset(name for window in windows for name in window.into if name in named)


def _order(accesses: Sequence[_Access], program: Program) -> tuple[str, ...]:
    """Return all variables, the one last that is innermost in most of what is loaded and saved."""
    votes: Counter[str] = Counter()
    for access in accesses:
        if access.strides:
            votes[min(access.strides, key=lambda name: abs(access.strides[name]))] += (
                access.elements * access.reads
            )
    known = dict.fromkeys(dim.variable for dims in program.dims.values() for dim in dims)
    if not votes:
        return tuple(known)
    lane = max(votes, key=lambda name: votes[name])
    best = max((a for a in accesses if lane in a.strides), key=lambda a: a.elements).strides
    inner = sorted(best, key=lambda name: (name != lane, abs(best[name])), reverse=True)
    return (*(name for name in known if name not in best), *inner)


def _free(program: Program) -> list[str]:
    """Return the variables that all results have, and that no step but those of elements knows."""
    named = named_by(flat_steps(program.block.steps))
    sizes: dict[str, set[int]] = {}
    for dim in (dim for dims in program.dims.values() for dim in dims):
        sizes.setdefault(dim.variable, set()).add(dim.size)
    results = [set(variables(program.dims[saver.tile])) for saver in program.block.savers]
    return [
        name
        for name, own in sizes.items()
        if own != {1} and len(own) == 1 and name not in named
        and all(name in result for result in results)
    ]  # fmt: skip


def named_by(steps: Sequence[object]) -> set[str]:
    """Return the variables that steps reduce over or relabel."""
    named: set[str] = set()
    for step in steps:
        assert isinstance(step, Operation)
        for value in step.attrs.values():
            parts = value if isinstance(value, tuple) else (value,)
            named.update(part for part in parts if isinstance(part, str))
    return named


def _with_lines(
    tiles: CpuTiles, access: _Access, sizes: Mapping[str, int], elements: int
) -> CpuTiles:
    """Return tiles of which each has so many elements of a tensor side by side, where there are so many."""
    run, changed = 1, dict(tiles.sizes)
    for name in sorted(access.strides, key=lambda name: abs(access.strides[name])):
        if abs(access.strides[name]) != run or run >= elements:
            break
        if name in changed:
            wanted = -(-elements // run)
            changed[name] = max(changed[name], wanted if sizes[name] > 2 * wanted else sizes[name])
        if changed.get(name, sizes[name]) < sizes[name]:
            break
        run *= sizes[name]
    return replace(tiles, sizes=changed)
