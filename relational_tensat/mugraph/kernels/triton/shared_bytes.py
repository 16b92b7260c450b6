"""What Triton needs of shared memory, before it compiles: the operands of products lie there.

Of the 45 kernels of the paper's benchmarks it is exact for half, and else within 0.6 and 1.8 times what the
compiler takes: on some architectures an operand stays in registers, or results change places among threads.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.graph.mugraph import WIDE_BYTES, Kernel, Operation
from relational_tensat.mugraph.graph.thread_graphs import flat_steps
from relational_tensat.mugraph.graph.well_formed import Stage, block_tensors
from relational_tensat.mugraph.kernels.triton.padding import PAIRS, multiplied
from relational_tensat.mugraph.kernels.triton.tensors import Axes, count_of, real

#: Of shared memory that a block may have on an A100; later devices have more.
LEAST_SHARED_BYTES = 163 << 10
#: The most that any device has.
MOST_SHARED_BYTES = 227 << 10
#: Iterations whose tiles are on their way at once: Triton's own number, where they fit.
MOST_STAGES = 3


def operand_bytes(
    kernel: Kernel,
    device: Mapping[str, Dims],
    dtype: str = "float16",
    wide: Collection[str] = (),
    stages: int = MOST_STAGES,
    only_tiles: bool = False,
) -> int:
    """Return the bytes of the tensors that products read, of tiles of a loop for all stages but one.

    Args:
        kernel: with the loop that it is emitted with.
        device: the dims of its operands.
        dtype: of elements, which products read.
        wide: the operands in device memory that are float32.
        stages: of the loop.
        only_tiles: whether what is computed, which may stay in registers, is left out.
    """
    tensors, steps = block_tensors(kernel, device), flat_steps(kernel.block.steps)
    axes = Axes(multiplied(steps, tensors.dims))
    iterators = {iterator.output: iterator for iterator in kernel.block.iterators}
    products = [step for step in steps if isinstance(step, Operation) and step.op in PAIRS]
    total = 0
    for name in {operand for step in products for operand in step.operands} & tensors.dims.keys():
        is_tile = name in iterators
        if only_tiles and not is_tile:
            continue
        is_wide = dtype == "float32" or (is_tile and iterators[name].tensor in wide)
        item_bytes = WIDE_BYTES if is_wide else 2
        copies = max(stages - 1, 1) if is_tile and tensors.stages[name] is Stage.LOOP else 1
        total += count_of(axes.shape(real(tensors.dims[name]))) * item_bytes * copies
    return total


def check_tiles(
    kernel: Kernel, device: Mapping[str, Dims], dtype: str, wide: Collection[str]
) -> None:
    """Check that the tiles that products read, of one iteration, fit shared memory of some device.

    Raises:
        InputError: they do not.
    """
    needed = operand_bytes(kernel, device, dtype, wide, stages=1, only_tiles=True)
    if needed > MOST_SHARED_BYTES:
        raise InputError(
            f"{kernel.name}: Triton needs some {needed:,} bytes of shared memory for a block's tiles, "
            f"more than the {MOST_SHARED_BYTES:,} of any device"
        )


def stages_of(kernel: Kernel, device: Mapping[str, Dims], dtype: str, wide: Collection[str]) -> int:
    """Return how many iterations' tiles are on their way at once: fewer than 3 where these do not fit."""
    for stages in range(MOST_STAGES, 1, -1):
        if operand_bytes(kernel, device, dtype, wide, stages) <= LEAST_SHARED_BYTES:
            return stages
    return 1
