"""What a search finds: kernels without sizes; and the μGraph that they are at given sizes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from relational_tensat.mugraph.graph.described import names
from relational_tensat.mugraph.graph.dims import Dim, Dims, variables
from relational_tensat.mugraph.graph.found_row import FoundRow
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockGraph,
    BlockStep,
    Kernel,
    KernelStep,
    MuGraph,
    Operation,
    Saver,
)
from relational_tensat.mugraph.graph.mugraph import Iterator as TileIterator
from relational_tensat.mugraph.graph.operators import mu_operator
from relational_tensat.mugraph.graph.well_formed import block_tensors, saved_dims
from relational_tensat.mugraph.search.structure import part_of


@dataclass(frozen=True, slots=True)
class FoundKernel:
    """A kernel without sizes: all maps follow from the index variables.

    Attributes:
        loads: the tensors that it reads, each with its tile's name.
        grid: the variables that the axes of the grid split.
        loop: the variable that the loop traverses; empty for no loop.
        steps: what a block computes.
        stores: tiles, each with its result's name.
        wide: the results that are no tensors of the program, but sums of parts: float32.
        rows: of the search that it came from.
    """

    loads: tuple[tuple[str, str], ...]
    grid: tuple[str, ...]
    loop: str
    steps: tuple[BlockStep, ...]
    stores: tuple[tuple[str, str], ...]
    wide: tuple[str, ...] = ()
    rows: tuple[FoundRow, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class FoundGraph:
    """Kernels that compute a program, in order."""

    program: MuGraph
    kernels: tuple[FoundKernel, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Route:
    """A way to compute a program by kernels, each of which may be any of several that store the same.

    Attributes:
        alternatives: for each kernel, in order, what it can be.
    """

    program: MuGraph
    alternatives: tuple[tuple[FoundKernel, ...], ...]
    outputs: tuple[str, ...]

    def graphs(self) -> Iterator[FoundGraph]:
        """Yield every choice."""
        for kernels in itertools.product(*self.alternatives):
            yield FoundGraph(self.program, kernels, self.outputs)


#: How often each axis of a kernel's grid splits its variable, and how many iterations its loop has; None
#: where an operator of a library takes the kernel's place.
Splits = tuple[tuple[int, ...], int] | None


def library_operation(kernel: FoundKernel) -> Operation | None:
    """Return the operator of a library that does what a kernel does, if it is one.

    Blocks may do parts of it, and a loop add them up; but what they store is whole, and no wide tensor.
    """
    if kernel.wide or len(kernel.stores) != 1 or not kernel.steps:
        return None
    first, *others = kernel.steps
    ((tile, output),) = kernel.stores
    tensors = {name: tensor for tensor, name in kernel.loads}
    if not isinstance(first, Operation) or set(first.operands) != tensors.keys():
        return None
    over = names(first.attrs, "over") if "over" in first.attrs else ()
    if not set(kernel.grid).isdisjoint(over):
        return None
    if kernel.loop in over:  # what iterations add up
        is_whole = others == [Accumulate(first.output, tile)] and first.op in ("matmul", "sum")
    else:
        is_whole = not others and first.output == tile and not kernel.loop
    if not is_whole:
        return None
    operands = tuple(tensors[name] for name in first.operands)
    return Operation(first.op, operands, output, first.attrs)


def build(found: FoundGraph, splits: Sequence[Splits]) -> MuGraph:
    """Return the μGraph at the sizes of the found graph's program.

    Args:
        found: what was found.
        splits: of each kernel; None for operators of a library.

    Raises:
        InputError: they do not divide the sizes.
    """
    device: dict[str, Dims] = dict(found.program.inputs)
    order = list(dict.fromkeys(v for dims in device.values() for v in variables(dims)))
    steps: list[KernelStep] = []
    for number, (kernel, split) in enumerate(zip(found.kernels, splits, strict=True), 1):
        if split is None:
            operation = library_operation(kernel)
            assert operation is not None
            kinds = [device[name] for name in operation.operands]
            device[operation.output] = mu_operator(operation.op).infer(kinds, operation.attrs)
            steps.append(operation)
            continue
        made = _sized(f"k{number}", kernel, device, *split, order)
        device.update({saver.output: saver.dims for saver in made.block.savers})
        steps.append(made)
    rows = tuple(
        replace(row, kernel=f"k{number}")
        for number, (kernel, split) in enumerate(zip(found.kernels, splits, strict=True), 1)
        for row in (kernel.rows if split is not None else ())
    )
    graph = MuGraph(found.program.name, found.program.inputs, tuple(steps), found.outputs, rows)
    return with_conditions(graph, found.program.conditions)


def with_conditions(graph: MuGraph, conditions: frozenset[str]) -> MuGraph:
    """Return a μGraph whose kernels load some inputs as bools."""
    if not conditions:
        return graph
    steps = tuple(
        with_condition_loads(step, conditions) if isinstance(step, Kernel) else step
        for step in graph.steps
    )
    return replace(graph, steps=steps, conditions=conditions)


def with_condition_loads(kernel: Kernel, conditions: frozenset[str]) -> Kernel:
    """Return a kernel that loads some inputs as bools."""
    iterators = tuple(
        replace(iterator, is_condition=iterator.tensor in conditions)
        for iterator in kernel.block.iterators
    )
    return replace(kernel, block=replace(kernel.block, iterators=iterators))


def unit_kernel(kernel: FoundKernel, device: Mapping[str, Dims], order: Sequence[str]) -> Kernel:
    """Return a kernel with one part of each variable.

    Args:
        kernel: the kernel.
        device: dims of tensors in device memory.
        order: of variables in results.
    """
    return _sized("kernel", kernel, device, (1,) * len(kernel.grid), 1, order)


def _sized(
    name: str,
    kernel: FoundKernel,
    device: Mapping[str, Dims],
    grid: tuple[int, ...],
    loop: int,
    order: Sequence[str],
) -> Kernel:
    """Return a kernel with sizes; ``order`` is of variables in results."""
    iterators = tuple(_iterator(kernel, tensor, tile, device) for tensor, tile in kernel.loads)
    bare = Kernel(name, BlockGraph(grid, loop, iterators, kernel.steps, ()))
    tiles = block_tensors(bare, device).dims
    savers = tuple(
        _saver(kernel, tile, output, tiles[tile], grid, order) for tile, output in kernel.stores
    )
    return Kernel(name, BlockGraph(grid, loop, iterators, kernel.steps, savers))


def _iterator(
    kernel: FoundKernel, tensor: str, tile: str, device: Mapping[str, Dims]
) -> TileIterator:
    mine = variables(device[tensor])
    imap = tuple(variable if variable in mine else "" for variable in kernel.grid)
    return TileIterator(tensor, tile, imap, kernel.loop if kernel.loop in mine else "")


def _saver(
    kernel: FoundKernel,
    tile: str,
    output: str,
    dims: Dims,
    grid: Sequence[int],
    order: Sequence[str],
) -> Saver:
    mine = variables(dims)
    omap = tuple(v if v in mine else part_of(v) for v in kernel.grid)
    bare = Saver(tile, output, (), omap)
    sizes = saved_dims(bare, dims, grid)
    parts = [v for v in sizes if v not in order]
    ordered = [*parts, *(v for v in order if v in sizes)]
    dims = tuple(Dim(v, sizes[v]) for v in ordered)
    return Saver(tile, output, dims, omap, is_wide=output in kernel.wide)
