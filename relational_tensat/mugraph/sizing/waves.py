"""What a kernel takes, modelled for many sizes at once: waves of blocks over the multiprocessors.

A block computes for as long as its operations take, or its loads from the second-level cache; blocks beyond
the number of multiprocessors wait for the next wave; and no kernel is faster than device memory brings what
it reads once and takes what it writes. A roofline without waves never splits keys among blocks, as
FlashDecoding does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from relational_tensat.mugraph.graph.described import names
from relational_tensat.mugraph.graph.dims import Dims, variables
from relational_tensat.mugraph.graph.mugraph import (
    CONDITION_BYTES,
    WIDE_BYTES,
    BlockGraph,
    BlockStep,
    Kernel,
    Operation,
    ThreadGraph,
)
from relational_tensat.mugraph.graph.well_formed import BlockTensors, Stage, block_tensors
from relational_tensat.mugraph.sizing.choices import Floats, Sizes, product_of, sum_of
from relational_tensat.mugraph.sizing.multiprocessors import Multiprocessors
from relational_tensat.mugraph.sizing.registers import MOST_REGISTERS, product_registers
from relational_tensat.mugraph.sizing.shared_memory import shared_bytes

#: Tiles of tensor cores: a dim of a product is rounded up to it.
_TENSOR_CORE = 16
#: What device memory gives at once, at least: two sectors of the second-level cache.
_LEAST_RUN_BYTES = 64


def kernel_us(
    kernel: Kernel,
    operands: Mapping[str, Dims],
    sizes: Sizes,
    device: Multiprocessors,
    wide: Collection[str] = (),
    fixed: Collection[str] = (),
) -> Floats:
    """Return the microseconds of a kernel for each choice of sizes; infinite where a block is too large.

    See ``kernel_times``.
    """
    return kernel_times(kernel, operands, sizes, device, wide, fixed)[0]


def kernel_times(
    kernel: Kernel,
    operands: Mapping[str, Dims],
    sizes: Sizes,
    device: Multiprocessors,
    wide: Collection[str] = (),
    fixed: Collection[str] = (),
) -> tuple[Floats, Floats]:
    """Return the microseconds of a kernel for each choice of sizes, and what its blocks alone take of them.

    Infinite where a block is too large. Many choices take as long as device memory does: of these the one
    is best whose blocks are done first.

    Args:
        kernel: the kernel, at any sizes.
        operands: dims of the tensors that it may load, at these.
        sizes: the choices.
        device: what it runs on.
        wide: the operands that are float32, whatever the device's elements are.
        fixed: the operands that lie in device memory as their dims are; of others nobody knows yet.
    """
    profile, block, tensors = device.profile, kernel.block, block_tensors(kernel, operands)
    peak = device.peak_flops_per_s / device.count * device.efficiency
    cache = profile.bandwidth_bytes_per_s * device.cache_factor / device.count
    flops = sum_of((_flops(step, tensors, sizes, device) for step in block.steps), sizes)
    computing = flops / peak
    lying = {name: operands[name] for name in kernel.operands if name in fixed}
    moved, unique = _bytes(block, tensors, sizes, device.element_bytes, wide, lying)
    busy = np.ceil(sizes.blocks / device.count) * np.maximum(computing, moved / cache)
    seconds = np.maximum(busy, unique / profile.bandwidth_bytes_per_s)
    fits = shared_bytes(kernel, operands, sizes, device.element_bytes, wide) <= device.shared_bytes
    fits &= product_registers(block, tensors, sizes) <= MOST_REGISTERS
    return np.where(fits, profile.launch_us + 1e6 * seconds, np.inf), 1e6 * busy


def _elements(name: str, tensors: BlockTensors, sizes: Sizes) -> Floats:
    """Return how many elements a block has of a tensor."""
    extents = sizes.after if tensors.stages[name] is Stage.AFTER else sizes.tile
    return product_of((dim.variable for dim in tensors.dims[name]), extents, sizes)


def _flops(step: BlockStep, tensors: BlockTensors, sizes: Sizes, device: Multiprocessors) -> Floats:
    """Return the operations of a step in all iterations of a block."""
    stage = max(
        (tensors.stages[name] for name in step.operands), key=_ORDER.index, default=Stage.LOOP
    )
    extents = sizes.after if stage is Stage.AFTER else sizes.tile
    loop = sizes.loop if stage is Stage.LOOP else np.ones_like(sizes.loop)
    inner = step.steps if isinstance(step, ThreadGraph) else (step,)
    own = tensors.dims[
        step.outputs[0]
    ]  # what a thread graph has in registers has its result's dims
    return loop * sum_of(
        (
            _once(
                one, [tensors.dims.get(name, own) for name in one.operands], extents, sizes, device
            )
            for one in inner
        ),
        sizes,
    )


def _once(
    step: BlockStep,
    operands: Sequence[Dims],
    extents: Mapping[str, Floats],
    sizes: Sizes,
    device: Multiprocessors,
) -> Floats:
    """Return the operations of a step in one iteration, as many as a product does in the time."""
    found = dict.fromkeys(variable for dims in operands for variable in variables(dims))
    if isinstance(step, Operation) and step.op in ("matmul", "concat_matmul"):
        if device.slowness > 1:
            extents = _padded(step, operands, extents)
        return 2.0 * product_of(found, extents, sizes)
    return device.slowness * product_of(found, extents, sizes)


def _padded(
    step: Operation, operands: Sequence[Dims], extents: Mapping[str, Floats]
) -> Mapping[str, Floats]:
    """Return extents rounded up to tensor cores, but for those of a batch."""
    over = names(step.attrs, "over")
    sides = [set(variables(dims)) for dims in operands]
    batch = set.intersection(*sides) - set(over)
    padding = {name: 1 if name in batch else _TENSOR_CORE for name in set.union(*sides)}
    return {name: np.ceil(extents[name] / size) * size for name, size in padding.items()}


_ORDER = (Stage.INVARIANT, Stage.LOOP, Stage.AFTER)


def _bytes(
    block: BlockGraph,
    tensors: BlockTensors,
    sizes: Sizes,
    element_bytes: int,
    wide: Collection[str],
    lying: Mapping[str, Dims],
) -> tuple[Floats, Floats]:
    """Return the bytes that a block moves, and those that all move, each element counted once.

    Device memory gives no less than two sectors: where a block's part of a row is shorter, the rest of
    them is for nothing.
    """
    moved, unique = np.zeros_like(sizes.blocks), np.zeros_like(sizes.blocks)
    for iterator in block.iterators:
        item_bytes = WIDE_BYTES if iterator.tensor in wide else element_bytes
        item_bytes = CONDITION_BYTES if iterator.is_condition else item_bytes
        names = [dim.variable for dim in tensors.dims[iterator.output]]
        iterations = sizes.loop if iterator.fmap else 1.0
        waste = _waste(lying.get(iterator.tensor, ()), names, sizes, item_bytes)
        moved = moved + product_of(names, sizes.tile, sizes) * iterations * item_bytes * waste
        unique = unique + product_of(names, sizes.whole, sizes) * item_bytes
    for saver in block.savers:
        item_bytes = WIDE_BYTES if saver.is_wide else element_bytes
        tile = _elements(saver.tile, tensors, sizes) * item_bytes
        moved = moved + tile
        unique = unique + tile * sizes.blocks
    return moved, unique


def _waste(lying: Dims, names: Sequence[str], sizes: Sizes, item_bytes: int) -> Floats:
    """Return by what factor what device memory gives is more than a tile's rows, where these are short."""
    inner = lying[-1].variable if lying else ""
    if inner not in names:
        return np.ones_like(sizes.blocks)
    waste = np.maximum(1.0, _LEAST_RUN_BYTES / (sizes.tile[inner] * item_bytes))
    return np.where(sizes.tile[inner] < sizes.whole[inner], waste, 1.0)
