"""Shared memory of a block: of what its statements store, by lifetimes."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.graph.mugraph import WIDE_BYTES, Kernel, MuGraph
from relational_tensat.mugraph.graph.well_formed import Stage, block_tensors, kernel_tensors
from relational_tensat.mugraph.kernels.cuda.emit_cuda import emit_cuda
from relational_tensat.mugraph.kernels.layouts.choosing_layouts import chosen_layouts
from relational_tensat.mugraph.kernels.lowering.layouts import PADDING_BYTES
from relational_tensat.mugraph.kernels.lowering.lowering import lower
from relational_tensat.mugraph.kernels.lowering.schedule import lifetimes
from relational_tensat.mugraph.sizing.choices import Floats, Sizes, product_of, sum_of


def shared_bytes(
    kernel: Kernel,
    operands: Mapping[str, Dims],
    sizes: Sizes,
    element_bytes: int,
    wide: Collection[str] = (),
) -> Floats:
    """Return how many bytes lie in shared memory at the worst moment, where rows are padded.

    Args:
        kernel: the kernel, at any sizes.
        operands: dims of the tensors that it may load, at these.
        sizes: the choices.
        element_bytes: of what is loaded and what products read.
        wide: the operands that are float32.

    Raises:
        InputError: it accumulates in a way that has no statement.
    """
    program, stages = lower(kernel, operands, wide=wide), block_tensors(kernel, operands).stages

    def size_of(name: str) -> Floats:
        stored = program.stored[name]
        owner = name.removesuffix("_tile").removesuffix("_shared")
        extents = sizes.after if stages.get(owner) is Stage.AFTER else sizes.tile
        variables = [dim.variable for dim in stored.dims]
        size = product_of(variables, extents, sizes)
        if stored.is_wide:
            return size * WIDE_BYTES
        rows = product_of(variables[:-1], extents, sizes)
        has_rows = (rows > 1) & (size > rows)
        return size * element_bytes + np.where(has_rows, rows * PADDING_BYTES, 0.0)

    needed = lifetimes(program)
    peak = np.zeros_like(sizes.blocks)
    for moment in sorted({first for first, _ in needed.values()}):
        alive = [name for name, (first, last) in needed.items() if first <= moment <= last]
        peak = np.maximum(peak, sum_of(map(size_of, alive), sizes))
    return peak


def emitted_bytes(graph: MuGraph, dtype: str) -> int:
    """Return the shared memory of the kernel that needs most, as its CUDA has it with one buffer a tile.

    Args:
        graph: of kernels only.
        dtype: of elements.

    Raises:
        InputError: a kernel accumulates in a way that has no statement.
    """
    dims = kernel_tensors(graph)
    layouts = chosen_layouts(graph, dtype).kernels
    emitted = (
        emit_cuda(kernel, dims, dtype, graph.wide, own)
        for kernel, own in zip(graph.kernels, layouts, strict=True)
    )
    return max(kernel.least_bytes for kernel in emitted)
