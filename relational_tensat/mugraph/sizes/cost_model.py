"""The time of a μGraph: at its sizes, as kernels of a library, and at least, at any sizes.

At least a kernel takes a launch, and the time of device memory for its loads and stores, each element once
(``waves.kernel_us``); an operator of a library likewise. Transfers between device memory and blocks are
counted from the maps.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from relational_tensat.mugraph.graph.dims import Dims, count
from relational_tensat.mugraph.graph.mu_operator import View
from relational_tensat.mugraph.graph.mugraph import (
    CONDITION_BYTES,
    WIDE_BYTES,
    InputIterator,
    Kernel,
    MuGraph,
    Operation,
    Saver,
)
from relational_tensat.mugraph.graph.operators import mu_operator
from relational_tensat.mugraph.graph.rewrites import core
from relational_tensat.mugraph.graph.validity import (
    BlockStage,
    BlockTensors,
    block_tensors,
    kernel_tensors,
    loaded_dims,
)
from relational_tensat.mugraph.sizes.waves import (
    Floats,
    Multiprocessors,
    Sizes,
    kernel_us,
    product_registers,
)


def graph_us(graph: MuGraph, device: Multiprocessors) -> float:
    """Return the modelled microseconds of a μGraph; infinite where a block of it is too large.

    Args:
        graph: of kernels, and of operators of libraries beside them.
        device: the GPU that it runs on.
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
    tile = _extents(tensors, (BlockStage.LOOP, BlockStage.INVARIANT))
    return Sizes(
        whole=_sizes(loaded_dims(iterator, device) for iterator in block.iterators),
        tile=tile,
        after=tile | _extents(tensors, (BlockStage.AFTER,)),
        blocks=_one(math.prod(block.grid)),
        loop=_one(block.loop),
    )


def _extents(tensors: BlockTensors, stages: tuple[BlockStage, ...]) -> dict[str, Floats]:
    return _sizes(dims for name, dims in tensors.dims.items() if tensors.stages[name] in stages)


def _sizes(tensors: Iterable[Dims]) -> dict[str, Floats]:
    return {dim.variable: _one(dim.size) for dims in tensors for dim in dims}


def _one(size: int) -> Floats:
    return np.array([float(size)])


#: The part of the peak that a library reaches.
_EFFICIENCY = 0.7


def operation_us(step: Operation, dims: Mapping[str, Dims], device: Multiprocessors) -> float:
    """Return the modelled microseconds of one operator as a kernel of a library, 0 if it moves nothing.

    Args:
        step: the operator.
        dims: of the tensors in device memory.
        device: the GPU that it runs on.
    """
    profile, peak = device.profile, device.peak_flops_per_s * _EFFICIENCY
    if isinstance(mu_operator(step.op), View):
        return 0.0
    operands, result = [dims[name] for name in step.operands], dims[step.output]
    flops = mu_operator(step.op).flops(operands, result)
    moved = device.element_bytes * sum(map(count, (*operands, result)))
    return profile.launch_us + 1e6 * max(flops / peak, moved / profile.bandwidth_bytes_per_s)


@dataclass(frozen=True, slots=True)
class Traffic:
    """A tensor that a kernel loads or stores.

    Attributes:
        is_wide: whether it is float32 in models of all types.
        is_condition: whether its elements are bools.
    """

    dims: Dims
    is_wide: bool = False
    is_condition: bool = False

    def bytes(self, element_bytes: int) -> int:
        """Return how many there are, of elements of so many."""
        item_bytes = WIDE_BYTES if self.is_wide else element_bytes
        return count(self.dims) * (CONDITION_BYTES if self.is_condition else item_bytes)


def least_kernel_us(tensors: Iterable[Traffic], device: Multiprocessors) -> float:
    """Return what no kernel that loads and stores some tensors takes less than.

    Args:
        tensors: these, perhaps not all.
        device: the GPU that it runs on.
    """
    moved = sum(tensor.bytes(device.element_bytes) for tensor in tensors)
    return device.profile.launch_us + 1e6 * moved / device.profile.bandwidth_bytes_per_s


def least_us(program: MuGraph, device: Multiprocessors) -> float:
    """Return what no kernel for a program takes less than.

    Args:
        program: of operators of libraries only.
        device: the GPU that it runs on.
    """
    program = core(program)
    dims = kernel_tensors(program)
    moved = (*program.inputs, *program.outputs)
    conditions = program.conditions
    return least_kernel_us(
        (Traffic(dims[name], is_condition=name in conditions) for name in moved), device
    )


@dataclass(frozen=True, slots=True)
class Transfer:
    """The part of a tensor that all blocks together load or store.

    Attributes:
        step: the iterator or saver.
        tile: dims of what a block moves at a time.
        moved_elements: of all blocks and iterations; an element that several of them need counts for each.
        tensor_elements: of the tensor in device memory: no less can be moved.
    """

    step: InputIterator | Saver
    tile: Dims
    moved_elements: int
    tensor_elements: int

    @property
    def is_load(self) -> bool:
        """Whether it is from device memory to the blocks."""
        return isinstance(self.step, InputIterator)


def transfers(kernel: Kernel, device: Mapping[str, Dims]) -> list[Transfer]:
    """Return what a kernel loads, in order, and then what it stores.

    Args:
        device: the dims of tensors in device memory.

    Raises:
        InputError: it is not well-formed.
    """
    block = kernel.block
    dims = block_tensors(kernel, device).dims
    blocks = math.prod(block.grid)
    loads = [
        Transfer(
            step=iterator,
            tile=dims[iterator.output],
            moved_elements=blocks
            * (block.loop if iterator.fmap else 1)
            * count(dims[iterator.output]),
            tensor_elements=count(loaded_dims(iterator, device)),
        )
        for iterator in block.iterators
    ]
    stores = [
        Transfer(saver, dims[saver.tile], blocks * count(dims[saver.tile]), count(saver.dims))
        for saver in block.savers
    ]
    return loads + stores
