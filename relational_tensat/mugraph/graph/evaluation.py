"""A μGraph is evaluated plainly: a block for all blocks and iterations at once.

The axes of the grid and the loop are labels of their own, which a tile has beside its index variables where
it differs from block to block or from iteration to iteration. So each step is the same operator on one more
label, and a tensor that is the same in all blocks is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from relational_tensat.mugraph.graph.arithmetic import (
    Arithmetic,
    Elements,
    Labelled,
    elementwise,
    summed,
)
from relational_tensat.mugraph.graph.dims import Dim, Dims, size_of, variables
from relational_tensat.mugraph.graph.mu_operator import names
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockGraph,
    BlockStep,
    InputIterator,
    Kernel,
    MuGraph,
    Operation,
    RunningMax,
    Saver,
    ThreadGraph,
)
from relational_tensat.mugraph.graph.operators import mu_operator, root_mean_square
from relational_tensat.mugraph.graph.partial_tiles import (
    GRID,
    LOOP,
    TileSplit,
    only_existing,
    partial_splits,
    splits_of,
)
from relational_tensat.mugraph.graph.validity import kernel_tensors

#: The splits of a block whose last tile is smaller, by variable.
Partial: TypeAlias = Mapping[str, TileSplit]
#: The operators that add up elements; of these, those beyond the end are left out.
_SUMS = ("sum", "matmul", "concat_matmul")
_NONE: Partial = MappingProxyType({})


def evaluate(
    graph: MuGraph,
    values: Mapping[str, Elements],
    arithmetic: Arithmetic,
    dims: Mapping[str, Dims] | None = None,
) -> dict[str, Elements]:
    """Return the outputs by name.

    Args:
        graph: the μGraph, or a program.
        values: of the inputs, with the arithmetic's own axes and then one per dim.
        arithmetic: the elements' arithmetic.
        dims: of all tensors in device memory, for who evaluates a graph many times.

    Raises:
        InputError: the graph is not well-formed.
    """
    dims = dims or kernel_tensors(graph)
    tensors = {name: Labelled(variables(kind), values[name]) for name, kind in graph.inputs.items()}
    with np.errstate(all="ignore"):
        for step in graph.steps:
            if isinstance(step, Kernel):
                tensors.update(_run_kernel(step, tensors, arithmetic))
            else:
                tensors[step.output] = _apply(step, tensors, arithmetic)
    return {name: tensors[name].ordered(variables(dims[name])).data for name in graph.outputs}


def _evaluate_block(
    block: BlockGraph, device: Mapping[str, Labelled], arithmetic: Arithmetic
) -> dict[str, Labelled]:
    """Return the tensors of a block, for all blocks and iterations.

    Args:
        block: the block graph.
        device: tensors in device memory by name.
        arithmetic: the elements' arithmetic.
    """
    grid, loop = block.grid, block.loop
    tiles = {it.output: tile_of(it, device[it.tensor], grid, loop) for it in block.iterators}
    dims = {name: _dims_of_labels(tensor) for name, tensor in device.items()}
    partial = partial_splits(block, dims)
    for step in block.steps:
        tiles.update(run_step(step, tiles, loop, arithmetic, partial))
    return tiles


def _run_kernel(
    kernel: Kernel, device: Mapping[str, Labelled], arithmetic: Arithmetic
) -> dict[str, Labelled]:
    inner = arithmetic.in_block
    loaded = {
        name: Labelled(device[name].labels, inner.loaded(device[name].data))
        for name in kernel.operands
    }
    tiles = _evaluate_block(kernel.block, loaded, inner)
    results = {}
    for saver in kernel.block.savers:
        value = assemble(tiles[saver.tile], saver, kernel.block.grid)
        data = arithmetic.stored(value.data, is_wide=saver.is_wide)
        results[saver.output] = Labelled(value.labels, data)
    return results


def _apply(
    step: Operation,
    tensors: Mapping[str, Labelled],
    arithmetic: Arithmetic,
    partial: Partial = _NONE,
) -> Labelled:
    operands = [tensors[name] for name in step.operands]
    if partial and step.op in _SUMS:
        over = names(step.attrs, "over")
        operands = [only_existing(operand, over, partial) for operand in operands]
    return mu_operator(step.op).evaluate(arithmetic, operands, step.attrs)


def tile_of(iterator: InputIterator, tensor: Labelled, grid: Sequence[int], loop: int) -> Labelled:
    """Return what blocks load: the grid's axes split a dim first, the loop what is left of it."""
    for window in iterator.windows:
        tensor = window.taken(tensor)
    block = BlockGraph(tuple(grid), loop, (iterator,), (), ())
    for split in splits_of(iterator, _dims_of_labels(tensor), block, iterator.tensor):
        beyond = split.count * split.tile - split.whole
        if beyond:  # copies of the last element
            tensor = tensor.longer(split.variable, beyond)
        tensor = tensor.split(split.variable, [*split.parts, (split.variable, split.tile)])
    return tensor


def _dims_of_labels(tensor: Labelled) -> Dims:
    return tuple(Dim(label, tensor.size(label)) for label in tensor.labels)


def run_step(
    step: BlockStep,
    tiles: Mapping[str, Labelled],
    loop: int,
    arithmetic: Arithmetic,
    partial: Partial = _NONE,
) -> dict[str, Labelled]:
    """Return what a step of a block makes, for all blocks and iterations.

    Args:
        tiles: the tensors that there are.
        loop: the number of iterations.
        arithmetic: the elements' arithmetic.
        partial: the splits whose last tile is smaller.
    """
    match step:
        case Operation():
            return {step.output: _apply(step, tiles, arithmetic, partial)}
        case ThreadGraph():
            registers = dict(tiles)
            for operation in step.steps:
                registers[operation.output] = _apply(operation, registers, arithmetic, partial)
            return {name: registers[name] for name in step.outputs}
        case RunningMax():
            return {step.output: _running_max(step, tiles[step.operand], arithmetic)}
        case Accumulate():
            return {step.output: _accumulate(step, tiles, loop, arithmetic, partial)}


def _accumulate(
    step: Accumulate,
    tiles: Mapping[str, Labelled],
    loop: int,
    arithmetic: Arithmetic,
    partial: Partial,
) -> Labelled:
    x = tiles[step.operand]
    if step.rescale:
        x = _rescaled(x, tiles[step.rescale], arithmetic)
    is_varying = LOOP in x.labels
    if step.kind in ("sum", "rms") and is_varying:
        looped = [name for name, split in partial.items() if split.is_in_loop]
        x = only_existing(x, looped, partial)
    match step.kind:
        case "sum" if is_varying:
            return summed(arithmetic, x, [LOOP])
        case "sum":
            return Labelled(x.labels, arithmetic.scale(x.data, float(loop)))
        case "max":
            return _largest(x, [LOOP] if is_varying else [], arithmetic)
        case "concat":
            (variable,) = step.along
            varying = x if is_varying else x.repeated(LOOP, loop)
            whole = varying.merged([LOOP, variable], variable)
            return whole.cut(variable, partial[variable].whole) if variable in partial else whole
        case "reduce_max":
            over = [*step.along, LOOP] if is_varying else [*step.along]
            kept = tuple(label for label in x.labels if label not in over)
            return Labelled(kept, arithmetic.reduce_max(x.data, x.axes(over)))
        case _:
            over = [*step.along, LOOP] if is_varying else [*step.along]
            return root_mean_square(arithmetic, x, over, step.epsilon, _existing(x, over, partial))


def _existing(x: Labelled, over: Sequence[str], partial: Partial) -> int:
    count = math.prod(x.size(label) for label in over)
    for split in (partial[name] for name in over if name in partial):
        if split.exists(x) is not None:
            count = count // (split.count * split.tile) * split.whole
    return count


def _running_max(step: RunningMax, x: Labelled, arithmetic: Arithmetic) -> Labelled:
    """Return the largest elements up to each iteration."""
    largest = _largest(x, step.over, arithmetic)
    if LOOP not in largest.labels:
        return largest
    axis = largest.axis(LOOP)
    running: list[Elements] = []
    for now in np.moveaxis(largest.data, axis, 0):
        running.append(arithmetic.larger(running[-1], now) if running else now)
    return Labelled(largest.labels, np.moveaxis(np.stack(running), 0, axis))


def _largest(x: Labelled, over: Sequence[str], arithmetic: Arithmetic) -> Labelled:
    kept = tuple(label for label in x.labels if label not in over)
    return Labelled(kept, arithmetic.largest(x.data, x.axes(over)))


def _rescaled(x: Labelled, running: Labelled, arithmetic: Arithmetic) -> Labelled:
    """Return what each iteration contributes in the end, measured by the largest element of all."""
    if LOOP not in running.labels:
        return x
    last = np.take(running.data, -1, axis=running.axis(LOOP))
    final = Labelled(tuple(label for label in running.labels if label != LOOP), last)
    difference = elementwise(arithmetic.subtract, running, final)
    factor = Labelled(difference.labels, arithmetic.function("exp", difference.data))
    return elementwise(arithmetic.multiply, x, factor)


def assemble(tile: Labelled, saver: Saver, grid: Iterable[int]) -> Labelled:
    """Return the result that all blocks' tiles are together.

    Args:
        tile: of all blocks, with a label for each axis of the grid that it depends on.
        saver: where they are stored.
        grid: the extents of the axes.
    """
    places: dict[str, list[str]] = {}
    for axis, (variable, extent) in enumerate(zip(saver.omap, grid, strict=True)):
        if not variable:
            continue
        if GRID[axis] not in tile.labels:
            tile = tile.repeated(GRID[axis], extent)
        places.setdefault(variable, []).append(GRID[axis])
    for variable, axes in places.items():
        own = [variable] if variable in tile.labels else []
        tile = tile.merged([*axes, *own], variable)
        if 0 < size_of(saver.dims, variable) < tile.size(variable):
            tile = tile.cut(variable, size_of(saver.dims, variable))
    single = [label for label in GRID if label in tile.labels]  # axes of one block
    return _without_units(tile, single).ordered(variables(saver.dims))


def _without_units(x: Labelled, labels: Sequence[str]) -> Labelled:
    kept = tuple(label for label in x.labels if label not in labels)
    data = x.ordered((*kept, *labels)).data
    return Labelled(kept, data.reshape(data.shape[: data.ndim - len(labels)]))
