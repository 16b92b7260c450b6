"""How long a kernel's loop is in Triton, and how many warps a block has: tiles within registers.

Sizes are chosen for CUDA, where a product reads shared memory as it goes. Triton has both operands of a
product in registers, and those of several iterations in shared memory, so its tiles are smaller: the loop
takes more and shorter steps, where that is the same sum; a kernel without one gets one where its products'
operands do not fit; and what is still larger gets more warps.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.graph.mugraph import Kernel, Operation
from relational_tensat.mugraph.graph.thread_graphs import flat_steps
from relational_tensat.mugraph.graph.well_formed import BlockTensors, Stage, block_tensors
from relational_tensat.mugraph.kernels.shorter_steps import with_shorter_steps
from relational_tensat.mugraph.kernels.triton.begun_loop import with_loop
from relational_tensat.mugraph.kernels.triton.padding import PAIRS, multiplied
from relational_tensat.mugraph.kernels.triton.shared_bytes import LEAST_SHARED_BYTES, operand_bytes
from relational_tensat.mugraph.kernels.triton.tensors import Axes, count_of, real

#: Elements of a tile that 4 warps have room for beside the rest: 64 x 128, 32 registers a thread.
_MOST_ELEMENTS = 8192
_LEAST_WARPS, _MOST_WARPS = 4, 8
#: A step of the loop is no shorter: of 32 elements a tensor core's products have two instructions.
_SHORTEST = 32


def fitted(
    kernel: Kernel,
    device: Mapping[str, Dims],
    dtype: str = "float16",
    wide: Collection[str] = (),
) -> Kernel:
    """Return a kernel with the fewest iterations whose tiles 4 warps have room for.

    It is the same where the loop cannot be longer, or no tile of it is too large.

    Args:
        kernel: the kernel.
        device: the dims of its operands.
        dtype: of elements.
        wide: the operands that are float32.
    """
    if operand_bytes(kernel, device, dtype, wide) > LEAST_SHARED_BYTES:
        kernel = with_loop(kernel, device) or kernel
    while _largest(kernel, device, in_loop=True) > _MOST_ELEMENTS:
        shorter = with_shorter_steps(kernel, device, _SHORTEST)
        if shorter is None:
            break
        kernel = shorter
    return kernel


def warps_of(kernel: Kernel, device: Mapping[str, Dims]) -> int:
    """Return how many warps a block has, so that a thread's share of the largest tensor is small.

    Beside it, a thread has its share of the loop's tiles that functions read: no product takes these
    from shared memory.
    """
    warps = _LEAST_WARPS
    elements = _largest(kernel, device, in_loop=False) + _read_by_functions(kernel, device)
    while warps < _MOST_WARPS and elements * _LEAST_WARPS > _MOST_ELEMENTS * warps:
        warps *= 2
    return warps


def _largest(kernel: Kernel, device: Mapping[str, Dims], in_loop: bool) -> int:
    """Return the elements of a block's largest tensor, with padding; of its loop's only, or of all."""
    tensors = block_tensors(kernel, device)
    found = (
        elements
        for name, elements in _elements(kernel, tensors).items()
        if not in_loop or tensors.stages[name] is Stage.LOOP
    )
    return max(found, default=1)


def _read_by_functions(kernel: Kernel, device: Mapping[str, Dims]) -> int:
    """Return the elements of the loop's tiles that something but a product reads."""
    tensors = block_tensors(kernel, device)
    elements, steps = _elements(kernel, tensors), flat_steps(kernel.block.steps)
    functions = [s for s in steps if not (isinstance(s, Operation) and s.op in PAIRS)]
    read = {name for step in functions for name in step.operands}
    tiles = {iterator.output for iterator in kernel.block.iterators if iterator.fmap}
    return sum(elements[name] for name in tiles & read)


def _elements(kernel: Kernel, tensors: BlockTensors) -> dict[str, int]:
    """Return how many elements each of a block's tensors has, with padding."""
    axes = Axes(multiplied(flat_steps(kernel.block.steps), tensors.dims))
    return {name: count_of(axes.shape(real(dims))) for name, dims in tensors.dims.items()}
