"""Kernels with their own tiles, but of two blocks along each axis of the grid and two iterations only.

What a block computes at a time, and so its code, stays as it is: that takes thread by thread a second
instead of hours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from relational_tensat.mugraph.graph.mugraph import Kernel, MuGraph
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.verify.small_sizes import resized

#: Blocks along an axis, and iterations.
_FEW = 2


def single_kernels(graph: MuGraph) -> Iterator[MuGraph]:
    """Yield each kernel of a μGraph as one of its own, without outputs.

    What other kernels store is its input then; what it stores may be wide, as no output is.
    """
    dims = kernel_tensors(graph)
    for kernel in graph.kernels:
        inputs = {name: dims[name] for name in kernel.operands}
        yield MuGraph(f"{graph.name} {kernel.name}", inputs, (kernel,), ())


def with_outputs(single: MuGraph) -> MuGraph:
    """Return a kernel of its own with all that it stores as outputs, of the model's elements."""
    (kernel,) = single.kernels
    savers = tuple(replace(saver, is_wide=False) for saver in kernel.block.savers)
    narrow = replace(kernel, block=replace(kernel.block, savers=savers))
    return replace(single, steps=(narrow,), outputs=kernel.outputs)


def with_fewer_blocks(graph: MuGraph) -> MuGraph:
    """Return a μGraph of one kernel whose tiles are the same, with few blocks and iterations.

    Raises:
        InputError: its splits do not divide the sizes that are left.
    """
    (kernel,) = graph.kernels
    sizes = {dim.variable: dim.size for dims in graph.inputs.values() for dim in dims}
    for it in kernel.block.iterators:
        maps = [*zip(it.imap, kernel.block.grid, strict=True), (it.fmap, kernel.block.loop)]
        for variable in {*it.imap, it.fmap} - {""}:
            splits = [extent for name, extent in maps if name == variable]
            whole = next(d.size for d in graph.inputs[it.tensor] if d.variable == variable)
            tile = -(-whole // math.prod(splits))
            lacking = tile * math.prod(splits) - whole  # in the last tile
            few = math.prod(min(extent, _FEW) for extent in splits)
            sizes[variable] = tile * few - lacking
    return resized(graph, sizes, _few)


def _few(kernel: Kernel) -> tuple[tuple[int, ...], int]:
    return tuple(min(extent, _FEW) for extent in kernel.block.grid), min(kernel.block.loop, _FEW)
