"""What a μGraph takes at the sizes that it has."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.graph.mugraph import Kernel, MuGraph
from relational_tensat.mugraph.graph.well_formed import (
    BlockTensors,
    Stage,
    block_tensors,
    kernel_tensors,
)
from relational_tensat.mugraph.sizing.multiprocessors import Multiprocessors
from relational_tensat.mugraph.sizing.waves import Floats, Sizes, kernel_us


def graph_us(graph: MuGraph, device: Multiprocessors) -> float:
    """Return the modelled microseconds of a μGraph; infinite where a block of it is too large.

    Args:
        graph: of kernels only.
        device: what it runs on.
    """
    dims = kernel_tensors(graph)
    return sum(_kernel_us(kernel, dims, device) for kernel in graph.kernels)


def _kernel_us(kernel: Kernel, dims: Mapping[str, Dims], device: Multiprocessors) -> float:
    block, tensors = kernel.block, block_tensors(kernel, dims)
    tile = _extents(tensors, (Stage.LOOP, Stage.INVARIANT))
    sizes = Sizes(
        whole=_sizes(dims[iterator.tensor] for iterator in block.iterators),
        tile=tile,
        after=tile | _extents(tensors, (Stage.AFTER,)),
        blocks=_one(math.prod(block.grid)),
        loop=_one(block.loop),
    )
    return float(kernel_us(block, tensors, sizes, device)[0])


def _extents(tensors: BlockTensors, stages: tuple[Stage, ...]) -> dict[str, Floats]:
    return _sizes(dims for name, dims in tensors.dims.items() if tensors.stages[name] in stages)


def _sizes(tensors: Iterable[Dims]) -> dict[str, Floats]:
    return {dim.variable: _one(dim.size) for dims in tensors for dim in dims}


def _one(size: int) -> Floats:
    return np.array([float(size)])
