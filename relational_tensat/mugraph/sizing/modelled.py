"""What a μGraph takes at the sizes that it has."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.graph.mugraph import Kernel, MuGraph
from relational_tensat.mugraph.graph.well_formed import (
    BlockTensors,
    Stage,
    block_tensors,
    kernel_tensors,
    loaded_dims,
)
from relational_tensat.mugraph.sizing.choices import Floats, Sizes
from relational_tensat.mugraph.sizing.libraries import operation_us
from relational_tensat.mugraph.sizing.multiprocessors import Multiprocessors
from relational_tensat.mugraph.sizing.registers import product_registers
from relational_tensat.mugraph.sizing.waves import kernel_us


def graph_us(graph: MuGraph, device: Multiprocessors) -> float:
    """Return the modelled microseconds of a μGraph; infinite where a block of it is too large.

    Args:
        graph: of kernels, and of operators of libraries beside them.
        device: what it runs on.
    """
    dims = kernel_tensors(graph)
    return sum(
        _kernel_us(step, dims, device, graph.wide, graph.inputs)
        if isinstance(step, Kernel)
        else operation_us(step, dims, device)
        for step in graph.steps
    )


def kernel_registers(kernel: Kernel, device: Mapping[str, Dims]) -> int:
    """Return how many registers a thread needs for a kernel's products.

    Args:
        kernel: the kernel.
        device: the dims of tensors in device memory.
    """
    tensors = block_tensors(kernel, device)
    sizes = _sizes_of(kernel, tensors, device)
    return int(product_registers(kernel.block, tensors, sizes)[0])


def _kernel_us(
    kernel: Kernel,
    dims: Mapping[str, Dims],
    device: Multiprocessors,
    wide: Collection[str],
    fixed: Collection[str],
) -> float:
    tensors = block_tensors(kernel, dims)
    sizes = _sizes_of(kernel, tensors, dims)
    return float(kernel_us(kernel, dims, sizes, device, wide, fixed)[0])


def _sizes_of(kernel: Kernel, tensors: BlockTensors, device: Mapping[str, Dims]) -> Sizes:
    block = kernel.block
    tile = _extents(tensors, (Stage.LOOP, Stage.INVARIANT))
    return Sizes(
        whole=_sizes(loaded_dims(iterator, device) for iterator in block.iterators),
        tile=tile,
        after=tile | _extents(tensors, (Stage.AFTER,)),
        blocks=_one(math.prod(block.grid)),
        loop=_one(block.loop),
    )


def _extents(tensors: BlockTensors, stages: tuple[Stage, ...]) -> dict[str, Floats]:
    return _sizes(dims for name, dims in tensors.dims.items() if tensors.stages[name] in stages)


def _sizes(tensors: Iterable[Dims]) -> dict[str, Floats]:
    return {dim.variable: _one(dim.size) for dims in tensors for dim in dims}


def _one(size: int) -> Floats:
    return np.array([float(size)])
