"""The same μGraph at small sizes: every split by its smallest factor, at most two elements in a tile.

Where a last tile is smaller, it still is: of one element, if no other kernel splits the variable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.described import names
from relational_tensat.mugraph.graph.dims import Dim, Dims, size_of
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockGraph,
    Kernel,
    KernelStep,
    MuGraph,
    Operation,
    RunningMax,
    ThreadGraph,
)
from relational_tensat.mugraph.graph.partial_tiles import partial_splits, tile_size
from relational_tensat.mugraph.graph.well_formed import block_tensors, kernel_tensors, saved_dims

#: The extents of a kernel's grid, and the iterations of its loop.
SplitsOf: TypeAlias = Callable[[Kernel], tuple[tuple[int, ...], int]]

#: Of a split whose last tile is smaller; more parts are tested as two.
_LARGEST_FACTOR = 7
#: Into how many parts such a variable is split instead, one after the other; 0 for its smallest factor:
#: where another kernel splits it into tiles that divide, it may have no such size.
_PARTS = (0, 3, 5, 7)
#: Operators that say what becomes of a variable.
RELABELLINGS = frozenset({"rename", "split", "merge", "repeat", "window"})


def shrunk(program: MuGraph, graph: MuGraph) -> tuple[MuGraph, MuGraph] | None:
    """Return a program and its μGraph at the smallest sizes at which they are still the same graphs.

    The program may be a μGraph of the same splits, too.
    None where the two name their index variables differently, or relabel them: sizes are then not free.
    """
    tried = (_resized_both(program, graph, {}, _smallest_splits(graph, parts)) for parts in _PARTS)
    return next((both for both in tried if both is not None), None)


def summed_variables(program: MuGraph, graph: MuGraph) -> frozenset[str]:
    """Return the variables that a sum, a maximum, a mean or a loop of either graph runs over."""
    return _run_over(program) | _run_over(graph)


def with_full_sums(
    program: MuGraph, graph: MuGraph, only: frozenset[str] | None = None
) -> tuple[MuGraph, MuGraph] | None:
    """Return a program and its μGraph with few entries of the result, each computed as at full size.

    Variables that a sum, a maximum, a mean or a loop runs over keep their sizes, and the grid and the loop
    that split them their extents. All operators are the same for each value of the others: of these there
    are as few as in ``shrunk``. None where that has none.

    Args:
        program: the program.
        graph: the μGraph.
        only: of those variables, the ones that keep their sizes; all by default.
    """
    whole = summed_variables(program, graph)
    whole = whole if only is None else whole & only
    sizes = {d.variable: d.size for dims in graph.inputs.values() for d in dims}
    kept = {v: n for v, n in sizes.items() if v in whole}
    tried = (
        _resized_both(program, graph, kept, _splits_of_others(graph, whole, parts))
        for parts in _PARTS
    )
    return next((both for both in tried if both is not None), None)


def _splits_of_others(graph: MuGraph, whole: frozenset[str], parts: int) -> SplitsOf:
    """Return the smallest splits of all but some variables; see ``_smallest_splits``."""
    smallest = _smallest_splits(graph, parts)

    def splits(kernel: Kernel) -> tuple[tuple[int, ...], int]:
        block = kernel.block
        maps = [part.imap for part in block.iterators] + [part.omap for part in block.savers]
        grid = tuple(
            extent if whole & {one[axis] for one in maps} else fewer
            for axis, (extent, fewer) in enumerate(
                zip(block.grid, smallest(kernel)[0], strict=True)
            )
        )
        return grid, block.loop

    return splits


def _run_over(graph: MuGraph) -> frozenset[str]:
    """Return the variables whose values operators, accumulators or loops put together."""
    found: set[str] = set()
    for step in graph.steps:
        inner = step.block.steps if isinstance(step, Kernel) else (step,)
        for one in inner:
            for part in one.steps if isinstance(one, ThreadGraph) else (one,):
                found.update(_variables_over(part))
        if isinstance(step, Kernel):
            found.update(iterator.fmap for iterator in step.block.iterators)
    return frozenset(found - {""})


def _variables_over(step: Operation | Accumulate | RunningMax) -> tuple[str, ...]:
    match step:
        case Operation():
            return names(step.attrs, "over") if "over" in step.attrs else ()
        case Accumulate():
            return step.along
        case RunningMax():
            return step.over


def _resized_both(
    program: MuGraph, graph: MuGraph, kept: Mapping[str, int], splits: SplitsOf
) -> tuple[MuGraph, MuGraph] | None:
    """Return both at the smallest sizes that go with splits, some at given sizes; None where not free."""
    if program.inputs != graph.inputs or any(_relabels(g) for g in (program, graph)):
        return None
    try:
        sizes = {**_small_sizes(graph, splits), **kept}
        return resized(program, sizes, splits), resized(graph, sizes, splits)
    except InputError:
        return None


def _relabels(graph: MuGraph) -> bool:
    kernels = [s for k in graph.kernels for s in k.block.steps if isinstance(s, Operation)]
    steps = [step for step in graph.steps if isinstance(step, Operation)]
    return any(step.op in RELABELLINGS for step in (*steps, *kernels))


def _small_sizes(graph: MuGraph, new_splits: SplitsOf) -> dict[str, int]:
    """Return a size for each variable of an input that all kernels' splits divide, or do not, as before.

    Raises:
        InputError: a variable has none.
    """
    dims = kernel_tensors(graph)
    sizes: dict[str, int] = {}
    partial: dict[str, set[int]] = {}
    for kernel in graph.kernels:
        grid, loop = new_splits(kernel)
        small_block = replace(kernel.block, grid=grid, loop=loop)
        both = zip(_splits(kernel.block), _splits(small_block), strict=True)
        for (tensor, variable, splits), (_, _, fewer) in both:
            whole, parts = size_of(dims[tensor], variable), math.prod(splits)
            if whole % parts:
                partial.setdefault(variable, set()).add(math.prod(fewer))
                continue
            small = math.prod(fewer) * min(whole // parts, 2)
            sizes[variable] = math.lcm(sizes.get(variable, 1), small)
    for variable, all_parts in partial.items():
        sizes[variable] = _size_with_smaller_tiles(variable, sizes.get(variable, 1), all_parts)
    for kind in graph.inputs.values():
        for dim in kind:
            sizes.setdefault(dim.variable, min(dim.size, 2))
    return sizes


def _size_with_smaller_tiles(variable: str, divisor: int, all_parts: set[int]) -> int:
    """Return the smallest multiple of a divisor whose last tile is smaller in each of several splits.

    Raises:
        InputError: there is none that is small.
    """
    for size in range(divisor, 4 * divisor * max(all_parts) + 1, divisor):
        if all(size % parts and tile_size(size, parts) for parts in all_parts):
            return size
    raise InputError(f"{variable} has no small size whose last tiles are as they were")


def _splits(block: BlockGraph) -> Iterator[tuple[str, str, list[int]]]:
    """Yield each tensor that a kernel loads, with each of its variables that is split, and how often."""
    for it in block.iterators:
        for variable in sorted({*it.imap, it.fmap} - {""}):
            splits = [n for name, n in zip(it.imap, block.grid, strict=True) if name == variable]
            yield it.tensor, variable, [*splits, *([block.loop] if it.fmap == variable else [])]


def resized(graph: MuGraph, sizes: Mapping[str, int], splits: SplitsOf) -> MuGraph:
    """Return a μGraph at other sizes.

    Args:
        graph: the μGraph, or a program.
        sizes: of its inputs' variables.
        splits: the extents of a kernel's grid then, and how many iterations its loop has.

    Raises:
        InputError: splits do not divide what one kernel leaves to the next.
    """
    inputs = _resized_inputs(graph, sizes)
    steps: list[KernelStep] = []
    for step in graph.steps:
        if isinstance(step, Kernel):
            device = kernel_tensors(replace(graph, inputs=inputs, steps=tuple(steps), outputs=()))
            step = _resized_kernel(step, device, splits)
        steps.append(step)
    small = replace(graph, inputs=inputs, steps=tuple(steps))
    kernel_tensors(small)
    return small


def _resized_kernel(kernel: Kernel, device: dict[str, Dims], splits: SplitsOf) -> Kernel:
    block = kernel.block
    grid, loop = splits(kernel)
    bare = BlockGraph(grid, loop, block.iterators, block.steps, ())
    tiles = block_tensors(Kernel(kernel.name, bare), device).dims
    savers = []
    for saver in block.savers:
        sizes = saved_dims(saver, tiles[saver.tile], grid)
        savers.append(
            replace(saver, dims=tuple(Dim(d.variable, sizes[d.variable]) for d in saver.dims))
        )
    return Kernel(kernel.name, replace(bare, savers=tuple(savers)))


def _smallest_splits(graph: MuGraph, parts: int = 0) -> SplitsOf:
    """Return each extent's smallest factor.

    Args:
        graph: the μGraph.
        parts: of what is split into tiles the last of which is smaller; 0 for smallest factors there, too,
            or 2, if these are large.
    """
    device = kernel_tensors(graph)

    def splits(kernel: Kernel) -> tuple[tuple[int, ...], int]:
        block = kernel.block
        partial = partial_splits(block, device).values()
        places = {axis for split in partial for axis in split.axes}
        places |= {len(block.grid) for split in partial if split.is_in_loop}
        fewer = [_smallest_factor(extent) for extent in (*block.grid, block.loop)]
        for place in places:
            fewer[place] = parts or (fewer[place] if fewer[place] <= _LARGEST_FACTOR else 2)
        return tuple(fewer[:-1]), fewer[-1]

    return splits


def _resized_inputs(graph: MuGraph, sizes: Mapping[str, int]) -> dict[str, Dims]:
    return {
        name: tuple(Dim(dim.variable, sizes[dim.variable]) for dim in dims)
        for name, dims in graph.inputs.items()
    }


def _smallest_factor(number: int) -> int:
    return next((f for f in range(2, number + 1) if number % f == 0), 1)
