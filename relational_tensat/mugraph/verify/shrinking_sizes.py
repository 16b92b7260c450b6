"""The same μGraph at small sizes: every split by its smallest factor, at most two elements in a tile."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.dims import Dim, Dims, size_of
from relational_tensat.mugraph.graph.mugraph import (
    BlockGraph,
    Kernel,
    KernelStep,
    MuGraph,
    Operation,
)
from relational_tensat.mugraph.graph.well_formed import block_tensors, kernel_tensors, saved_dims

#: The extents of a kernel's grid, and the iterations of its loop.
SplitsOf: TypeAlias = Callable[[Kernel], tuple[tuple[int, ...], int]]

_RELABELLINGS = frozenset({"rename", "split", "merge", "repeat"})


def shrunk(program: MuGraph, graph: MuGraph) -> tuple[MuGraph, MuGraph] | None:
    """Return a program and its μGraph at the smallest sizes at which they are still the same graphs.

    The program may be a μGraph of the same splits, too.
    None where the two name their index variables differently, or relabel them: sizes are then not free.
    """
    if program.inputs != graph.inputs or any(_relabels(g) for g in (program, graph)):
        return None
    sizes = _small_sizes(graph)
    try:
        return resized(program, sizes, _smallest_splits), resized(graph, sizes, _smallest_splits)
    except InputError:
        return None


def _relabels(graph: MuGraph) -> bool:
    kernels = [s for k in graph.kernels for s in k.block.steps if isinstance(s, Operation)]
    steps = [step for step in graph.steps if isinstance(step, Operation)]
    return any(step.op in _RELABELLINGS for step in (*steps, *kernels))


def _small_sizes(graph: MuGraph) -> dict[str, int]:
    """Return a size for each variable of an input that all kernels' splits divide."""
    dims = kernel_tensors(graph)
    sizes: dict[str, int] = {}
    for kernel in graph.kernels:
        for tensor, variable, splits in _splits(kernel):
            tile = size_of(dims[tensor], variable) // math.prod(splits)
            small = math.prod(map(_smallest_factor, splits)) * min(tile, 2)
            sizes[variable] = math.lcm(sizes.get(variable, 1), small)
    for kind in graph.inputs.values():
        for dim in kind:
            sizes.setdefault(dim.variable, min(dim.size, 2))
    return sizes


def _splits(kernel: Kernel) -> Iterator[tuple[str, str, list[int]]]:
    """Yield each tensor that a kernel loads, with each of its variables that is split, and how often."""
    block = kernel.block
    for it in block.iterators:
        for variable in {*it.imap, it.fmap} - {""}:
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


def _smallest_splits(kernel: Kernel) -> tuple[tuple[int, ...], int]:
    return tuple(map(_smallest_factor, kernel.block.grid)), _smallest_factor(kernel.block.loop)


def _resized_inputs(graph: MuGraph, sizes: Mapping[str, int]) -> dict[str, Dims]:
    return {
        name: tuple(Dim(dim.variable, sizes[dim.variable]) for dim in dims)
        for name, dims in graph.inputs.items()
    }


def _smallest_factor(number: int) -> int:
    return next((f for f in range(2, number + 1) if number % f == 0), 1)
