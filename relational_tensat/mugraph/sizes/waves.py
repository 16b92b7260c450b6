"""The time of a kernel, modelled for many sizes at once: waves of blocks over the multiprocessors.

A block computes for as long as its operations take, or its loads from the second-level cache. Blocks beyond
the number of multiprocessors wait for the next wave. No kernel is faster than device memory brings what it
reads once and takes what it writes. A roofline without waves never splits keys among blocks, as
FlashDecoding does.

How many blocks a multiprocessor has at once is for shared memory, counted by lifetimes of what a block's
statements store, and for registers, of which products take most, where they lie as tensor cores leave them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from relational_tensat.cost.profile import Profile
from relational_tensat.cost.profile_file import load_profile
from relational_tensat.mugraph.graph.dims import Dims, variables
from relational_tensat.mugraph.graph.mu_operator import names
from relational_tensat.mugraph.graph.mugraph import (
    CONDITION_BYTES,
    WIDE_BYTES,
    BlockGraph,
    BlockStep,
    Kernel,
    MuGraph,
    Operation,
    ThreadGraph,
)
from relational_tensat.mugraph.graph.validity import (
    BlockStage,
    BlockTensors,
    block_tensors,
    kernel_tensors,
)
from relational_tensat.mugraph.kernels.cuda_buffers import lifetimes
from relational_tensat.mugraph.kernels.emit_cuda import emit_cuda
from relational_tensat.mugraph.kernels.kernel_statements import frame_of, lower
from relational_tensat.mugraph.kernels.layout_choice import chosen_layouts
from relational_tensat.mugraph.kernels.layouts import PADDING_BYTES
from relational_tensat.tensor import DTYPE_BYTES

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Many choices of sizes of one kernel: arrays with an element per choice.

    Attributes:
        whole: of variables in device memory.
        tile: of variables in a block and an iteration.
        after: of variables in a block after the loop, which concatenation makes longer.
        blocks, loop: how many there are.
    """

    whole: Mapping[str, Floats]
    tile: Mapping[str, Floats]
    after: Mapping[str, Floats]
    blocks: Floats
    loop: Floats


def sum_of(terms: Iterable[Floats], sizes: Sizes) -> Floats:
    """Return a sum of arrays, zeros of none."""
    total = np.zeros_like(sizes.blocks)
    for term in terms:
        total = total + term
    return total


def _product_of(labels: Iterable[str], extents: Mapping[str, Floats], sizes: Sizes) -> Floats:
    """Return the product of the extents of some variables, ones of none."""
    total = np.ones_like(sizes.blocks)
    for label in labels:
        total = total * extents[label]
    return total


#: The most registers of a thread for products. Compilers need the rest of its 255 registers for
#: exponentials, operands and addresses: of the benchmarks, kernels with 120 spilled nothing, some with 164
#: did.
MOST_REGISTERS = 128
#: Rows and columns of what an instruction computes, of which each thread of a warp has 4 elements.
_ROWS, _COLUMNS, _ELEMENTS = 16, 8, 4
#: Sizes are chosen as if blocks had so many warps; with more of them a thread has less of a product.
_WARPS = 4


def product_registers(block: BlockGraph, tensors: BlockTensors, sizes: Sizes) -> Floats:
    """Return how many registers a thread needs for all products of a block, as ``fused.cuh`` has them.

    Those that a loop adds up are there until its end, so all are counted as if at once.

    Args:
        block: the block graph, at any sizes.
        sizes: the choices.
    """
    products = (
        step
        for step in block.steps
        if isinstance(step, Operation) and step.op in ("matmul", "concat_matmul")
    )
    return sum_of((_registers(step, tensors, sizes) for step in products), sizes)


def _registers(step: Operation, tensors: BlockTensors, sizes: Sizes) -> Floats:
    other = 1 if step.op == "matmul" else 2
    dims = [tensors.dims[step.operands[place]] for place in (0, other)]
    frame = frame_of(dims[0], dims[1], names(step.attrs, "over"))
    extents = sizes.after if tensors.stages[step.output] is BlockStage.AFTER else sizes.tile
    matrices, rows, columns = (
        _product_of((dim.variable for dim in part), extents, sizes)
        for part in (frame.batch, frame.rows, frame.columns)
    )
    strips, pieces = np.ceil(rows / _ROWS), np.ceil(columns / _COLUMNS)
    share = np.maximum(1.0, _WARPS // strips)  # warps to a strip of rows
    own_strips: Floats = np.ceil(strips / (_WARPS // share))
    own_pieces: Floats = np.ceil(pieces / share)
    return matrices * own_strips * own_pieces * _ELEMENTS


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
        extents = sizes.after if stages.get(owner) is BlockStage.AFTER else sizes.tile
        variables = [dim.variable for dim in stored.dims]
        size = _product_of(variables, extents, sizes)
        if stored.is_wide:
            return size * WIDE_BYTES
        rows = _product_of(variables[:-1], extents, sizes)
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


def device_bytes(graph: MuGraph, element_bytes: int) -> int:
    """Return the bytes that all tensors between kernels take together, inputs and outputs among them."""
    return sum(
        math.prod(dim.size for dim in dims) * (WIDE_BYTES if name in graph.wide else element_bytes)
        for name, dims in kernel_tensors(graph).items()
    )


@dataclass(frozen=True, slots=True)
class Multiprocessors:
    """A profile, and what is modelled of a kernel's blocks beside it.

    Attributes:
        profile: peak rates, launch, multiprocessors (each runs a block at a time), shared memory.
        dtype: of elements.
        cache_factor: bandwidth of the second-level cache by that of device memory.
        efficiency: the part of the peak that a block reaches.
    """

    profile: Profile
    dtype: str = "float16"
    cache_factor: float = 2.5
    efficiency: float = 0.5

    @property
    def count(self) -> int:
        """Of multiprocessors."""
        return self.profile.multiprocessors

    @property
    def shared_bytes(self) -> int:
        """Of shared memory that a block may have."""
        return self.profile.shared_bytes

    @property
    def element_bytes(self) -> int:
        """Of an element."""
        return DTYPE_BYTES[self.dtype]

    @property
    def peak_flops_per_s(self) -> float:
        """Of products."""
        return self.profile.peak_for(self.dtype)

    @property
    def slowness(self) -> float:
        """How much faster products are than other operations, which ordinary cores do in float32."""
        return max(1.0, self.peak_flops_per_s / self.profile.peak_for("float32"))


@cache
def a100() -> Multiprocessors:
    """Return NVIDIA's A100 on elements of float16."""
    return Multiprocessors(load_profile("a100"))


#: Tiles of tensor cores: a dim of a product is rounded up to it.
_TENSOR_CORE = 16
#: The least that device memory gives at once: two sectors of the second-level cache.
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
        device: the GPU that it runs on.
        wide: the operands that are float32 in models of all types.
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
    extents = sizes.after if tensors.stages[name] is BlockStage.AFTER else sizes.tile
    return _product_of((dim.variable for dim in tensors.dims[name]), extents, sizes)


def _flops(step: BlockStep, tensors: BlockTensors, sizes: Sizes, device: Multiprocessors) -> Floats:
    stage = max(
        (tensors.stages[name] for name in step.operands), key=_ORDER.index, default=BlockStage.LOOP
    )
    extents = sizes.after if stage is BlockStage.AFTER else sizes.tile
    loop = sizes.loop if stage is BlockStage.LOOP else np.ones_like(sizes.loop)
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
        return 2.0 * _product_of(found, extents, sizes)
    return device.slowness * _product_of(found, extents, sizes)


def _padded(
    step: Operation, operands: Sequence[Dims], extents: Mapping[str, Floats]
) -> Mapping[str, Floats]:
    """Return extents rounded up to tensor cores, but for those of a batch."""
    over = names(step.attrs, "over")
    sides = [set(variables(dims)) for dims in operands]
    batch = set.intersection(*sides) - set(over)
    padding = {name: 1 if name in batch else _TENSOR_CORE for name in set.union(*sides)}
    return {name: np.ceil(extents[name] / size) * size for name, size in padding.items()}


_ORDER = (BlockStage.INVARIANT, BlockStage.LOOP, BlockStage.AFTER)


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
        moved = moved + _product_of(names, sizes.tile, sizes) * iterations * item_bytes * waste
        unique = unique + _product_of(names, sizes.whole, sizes) * item_bytes
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
