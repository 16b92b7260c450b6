"""How many buffers a loop's tiles have in shared memory, and how short its steps are so that they fit.

While an iteration computes with one buffer, the tiles of those that come next arrive in the others.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.graph.mugraph import Kernel
from relational_tensat.mugraph.graph.well_formed import Stage
from relational_tensat.mugraph.kernels.cuda.partials import WARPS, with_partials
from relational_tensat.mugraph.kernels.lowering.layouts import PADDING_BYTES, row_major
from relational_tensat.mugraph.kernels.lowering.lowering import lower
from relational_tensat.mugraph.kernels.lowering.schedule import Schedule, schedule
from relational_tensat.mugraph.kernels.lowering.statements import Load, Multiply, Program
from relational_tensat.mugraph.kernels.shorter_steps import with_shorter_steps

#: Of a multiprocessor for which kernels are made, at least (an A100's): shared memory of all of its blocks,
#: what each block takes of it beside its own, threads, registers, and how many multiprocessors there are.
_SHARED_BYTES, _OF_BLOCK_BYTES, _MULTIPROCESSORS = 164 << 10, 1 << 10, 108
_THREADS, _REGISTERS = 2048, 65536
#: What a thread needs beside products, at least.
_OTHER_REGISTERS = 40
#: More buffers than these bring nothing.
_MOST_BUFFERS = 4
#: So many are wanted; of loops that rescale sums, whose iterations wait several times, the second.
_WANTED, _WANTED_OF_RESCALED = 3, 2
#: Because of buffers steps are not so short that one loads less, nor shorter than a product's instruction.
_LEAST_BYTES, _SHORTEST = 16 << 10, 16


@dataclass(frozen=True, slots=True)
class Roomy:
    """A kernel, the steps of whose loop may be shorter than they were.

    Attributes:
        kernel: the kernel.
        most_bytes: of shared memory, so that no fewer blocks are on a multiprocessor at once than before.
    """

    kernel: Kernel
    most_bytes: int


def schedule_with_buffers(
    program: Program, sizes_bytes: Mapping[str, int], ahead: Collection[str], most_bytes: int
) -> Schedule:
    """Return a schedule with as many buffers as there is room for.

    Args:
        program: what the block does.
        sizes_bytes: of the tensors that lie in shared memory.
        ahead: the tiles of the loop that are copied without waiting.
        most_bytes: of shared memory; with one buffer it may be more.
    """
    for buffers in range(min(_MOST_BUFFERS, program.block.loop), 1, -1):
        made = schedule(program, sizes_bytes, ahead, buffers)
        if ahead and made.shared_bytes <= most_bytes:
            return made
    return schedule(program, sizes_bytes)


def with_room_for_buffers(
    kernel: Kernel, device: Mapping[str, Dims], item_bytes: int, wide: Collection[str]
) -> Roomy:
    """Return a kernel whose loop has so short steps that its tiles have buffers; the same if it cannot.

    Args:
        kernel: the kernel.
        device: the dims of its operands.
        item_bytes: of elements that are not wide.
        wide: the operands that are float32, too.
    """
    program = with_partials(lower(kernel, device, wide=wide))
    sizes = _sizes_bytes(program, item_bytes)
    most_bytes = _room(program, schedule(program, sizes).shared_bytes)
    products = [s for s in program.statements[Stage.LOOP] if isinstance(s, Multiply)]
    is_rescaled = any(product.rescale for product in products)
    wanted = _WANTED_OF_RESCALED if is_rescaled else _WANTED
    best, most = kernel, 1
    tried: Kernel | None = kernel
    while tried is not None:
        program = with_partials(lower(tried, device, wide=wide))
        sizes, ahead = _sizes_bytes(program, item_bytes), _loaded(program)
        buffers = schedule_with_buffers(program, sizes, ahead, most_bytes).buffers
        if buffers > most:
            best, most = tried, buffers
        if most >= wanted or sum(sizes[name] for name in ahead) < 2 * _LEAST_BYTES:
            break
        tried = with_shorter_steps(tried, device, _SHORTEST)
    return Roomy(best, most_bytes)


def _loaded(program: Program) -> list[str]:
    """Return the tiles of the loop that may be copied without waiting: bools are not."""
    loads = [s for s in program.statements[Stage.LOOP] if isinstance(s, Load)]
    return [load.output for load in loads if not load.iterator.is_condition]


def _sizes_bytes(program: Program, item_bytes: int) -> dict[str, int]:
    """Return the sizes of tensors in shared memory with rows as the model has them, longer by 16 bytes."""
    sizes = {}
    for name, stored in program.stored.items():
        if stored.frame is None:
            padding = 0 if stored.is_wide else PADDING_BYTES // item_bytes
            elements = row_major(stored.dims, padding).elements
            sizes[name] = elements * (4 if stored.is_wide else item_bytes)
    return sizes


def _room(program: Program, plain_bytes: int) -> int:
    """Return how much shared memory a block may have so that no fewer are on a multiprocessor at once."""
    threads = 32 * WARPS
    fitting = (
        _SHARED_BYTES // (plain_bytes + _OF_BLOCK_BYTES),
        -(-math.prod(program.block.grid) // _MULTIPROCESSORS),
        _THREADS // threads,
        _REGISTERS // (threads * (_OTHER_REGISTERS + _product_registers(program))),
    )
    return _SHARED_BYTES // max(1, min(fitting)) - _OF_BLOCK_BYTES


def _product_registers(program: Program) -> int:
    """Return what a thread has of all products; see ``Sums`` of ``fused.cuh``."""
    total = 0
    for stored in program.stored.values():
        if stored.frame is not None:
            batch, rows, columns = stored.frame.sizes
            strips, pieces = -(-rows // 16), -(-columns // 8)
            share = max(1, WARPS // strips)
            total += batch * -(-strips // (WARPS // share)) * -(-pieces // share) * 4
    return total
