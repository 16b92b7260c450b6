"""When a block's statements run, where their tensors lie in shared memory, and where threads wait.

A loop's tiles may have several buffers: while an iteration computes with one, the tiles of the next ones
arrive in the others. Steps are as short as it takes for them to fit. Where several warps work on one result
of a reduction, there is room for what each contributes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from relational_tensat.mugraph.graph.dims import Dim, Dims, count
from relational_tensat.mugraph.graph.mugraph import Kernel
from relational_tensat.mugraph.graph.validity import BlockStage
from relational_tensat.mugraph.kernels.kernel_statements import lower
from relational_tensat.mugraph.kernels.layouts import PADDING_BYTES, row_major
from relational_tensat.mugraph.kernels.loop_rewrites import with_shorter_steps
from relational_tensat.mugraph.kernels.statements import (
    Load,
    Multiply,
    Program,
    Reduce,
    Statement,
    StoredTensor,
    partials_of,
)

#: Warps of a block.
WARPS = 8


def with_partials(program: Program) -> Program:
    """Return a program with room for what each warp contributes to a reduction, where several do."""
    stored = dict(program.stored)
    for statements in program.statements.values():
        for statement in statements:
            if isinstance(statement, Reduce):
                results = _shared_results(program, statement)
                if results:
                    dims = (Dim("@result", results), Dim("@warp", WARPS))
                    stored[partials_of(statement.output)] = StoredTensor(dims, is_wide=True)
    return replace(program, stored=stored)


def _shared_results(program: Program, reduce: Reduce) -> int:
    """Return how many results of a reduction several warps work on together; as in ``fused.cuh``."""
    frame = program.frame(reduce.operand)
    if frame is not None:
        batch, rows, _ = frame.sizes
        return batch * rows if -(-rows // 16) * 2 <= WARPS else 0
    dims = program.dims[reduce.operand]
    results = count(tuple(dim for dim in dims if dim.variable not in reduce.over))
    threads = 32 * WARPS
    while threads > 1 and (threads > count(dims) // results or threads * results > 32 * WARPS):
        threads //= 2
    return results if threads > 32 else 0


#: Where tensors in shared memory begin: at a multiple of so many bytes.
ALIGNMENT_BYTES = 16
_ORDER = (BlockStage.INVARIANT, BlockStage.LOOP, BlockStage.AFTER)


@dataclass(frozen=True, slots=True)
class BufferPlace:
    """Where a tensor lies in a block's shared memory, and while which statements it is needed.

    Attributes:
        offset_bytes, size_bytes: where.
        first, last: positions of statements, counted through all stages.
    """

    offset_bytes: int
    size_bytes: int
    first: int
    last: int

    def overlaps(self, other: BufferPlace) -> bool:
        """Return whether they have a byte in common."""
        return (
            self.offset_bytes < other.offset_bytes + other.size_bytes
            and other.offset_bytes < self.offset_bytes + self.size_bytes
        )


@dataclass(frozen=True, slots=True)
class ScheduleStep:
    """A statement, and whether threads wait for each other before it."""

    statement: Statement
    waits: bool


@dataclass(frozen=True, slots=True)
class BlockSchedule:
    """The order, the places, the barriers.

    Attributes:
        steps: by stage, in order.
        places: of tensors in shared memory, by name.
        ahead: the tiles that the loop loads ahead, each in buffers one after the other.
        buffers: of such a tile; an iteration computes with one of them while the others are filled.
    """

    steps: Mapping[BlockStage, tuple[ScheduleStep, ...]]
    places: Mapping[str, BufferPlace]
    ahead: frozenset[str] = frozenset()
    buffers: int = 1

    @property
    def shared_bytes(self) -> int:
        """How much shared memory a block needs."""
        ends = (place.offset_bytes + place.size_bytes for place in self.places.values())
        return max(ends, default=0)


def schedule(
    program: Program,
    sizes_bytes: Mapping[str, int],
    ahead: Collection[str] = (),
    buffers: int = 1,
) -> BlockSchedule:
    """Return a schedule: by depth, memory by lifetimes, barriers where a byte changes hands.

    Args:
        program: the block's statements.
        sizes_bytes: of the tensors that lie in shared memory.
        ahead: the tiles that the loop shall load ahead.
        buffers: how many each of these has; with one nothing is loaded ahead.
    """
    ahead = frozenset(ahead if buffers > 1 else ())
    order = {stage: _by_depth(program, program.statements[stage]) for stage in _ORDER}
    order[BlockStage.LOOP] = tuple(
        sorted(order[BlockStage.LOOP], key=lambda s: s.output not in ahead)
    )
    lifetimes = _lifetimes(program, order, sizes_bytes)
    end = len(order[BlockStage.INVARIANT]) + len(order[BlockStage.LOOP]) - 1
    for name in ahead:  # the first ones are loaded before the loop
        lifetimes[name] = 0, max(end, lifetimes[name][1])
    room = {
        name: -(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES * (buffers if name in ahead else 1)
        for name, size in sizes_bytes.items()
    }
    places = _placed(lifetimes, room)
    return BlockSchedule(_with_barriers(program, order, places, ahead), places, ahead, buffers)


def lifetimes(program: Program) -> dict[str, tuple[int, int]]:
    """Return the first and the last statement that needs each tensor in shared memory.

    Positions are counted through all stages.
    """
    order = {stage: _by_depth(program, program.statements[stage]) for stage in _ORDER}
    shared = {name: 0 for name, stored in program.stored.items() if stored.frame is None}
    return _lifetimes(program, order, shared)


def alive(program: Program) -> list[frozenset[str]]:
    """Return which tensors in shared memory are needed at once, by statement; equal sets once."""
    needed = lifetimes(program)
    count = sum(map(len, program.statements.values()))
    sets = (
        frozenset(name for name in needed if needed[name][0] <= place <= needed[name][1])
        for place in range(count)
    )
    return list(dict.fromkeys(sets))


def _by_depth(program: Program, statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """Return statements by their longest path of statements that must come before; ties as they were."""
    depths: list[int] = []
    for place, statement in enumerate(statements):
        reads, writes = program.reads(statement), program.writes(statement)
        before = [
            depths[i] + 1
            for i in range(place)
            if program.writes(statements[i]) & (reads | writes)
            or program.reads(statements[i]) & writes
        ]
        depths.append(max(before, default=0))
    order = sorted(range(len(statements)), key=depths.__getitem__)
    return tuple(statements[i] for i in order)


def _lifetimes(
    program: Program, order: Mapping[BlockStage, Sequence[Statement]], names: Collection[str]
) -> dict[str, tuple[int, int]]:
    """Return the first and the last statement that needs each tensor.

    Values that come into the loop from outside, or from one iteration into the next, are needed in all of
    it.
    """
    begin = len(order[BlockStage.INVARIANT])
    end = begin + len(order[BlockStage.LOOP]) - 1
    statements = [statement for stage in _ORDER for statement in order[stage]]
    result = {}
    for name in names:
        used = [
            i
            for i, statement in enumerate(statements)
            if name in program.reads(statement) | program.writes(statement)
        ]
        first, last = used[0], used[-1]
        is_in_loop = begin <= last and first <= end
        leaves = first < begin or last > end or program.stored[name].initial is not None
        if is_in_loop and leaves:
            is_carried = program.stored[name].initial is not None
            first, last = min(first, 0 if is_carried else begin), max(last, end)
        result[name] = first, last
    return result


def _placed(
    lifetimes: Mapping[str, tuple[int, int]], sizes_bytes: Mapping[str, int]
) -> dict[str, BufferPlace]:
    """Return where tensors lie: the best of first fits in several orders."""
    orders = (
        lambda name: (-sizes_bytes[name], lifetimes[name]),
        lambda name: (lifetimes[name], -sizes_bytes[name]),
        lambda name: (lifetimes[name][0] - lifetimes[name][1], -sizes_bytes[name]),
    )
    candidates = [
        _first_fit(sorted(lifetimes, key=order), lifetimes, sizes_bytes) for order in orders
    ]
    return min(
        candidates,
        key=lambda places: max((p.offset_bytes + p.size_bytes for p in places.values()), default=0),
    )


def _first_fit(
    order: Sequence[str], lifetimes: Mapping[str, tuple[int, int]], sizes_bytes: Mapping[str, int]
) -> dict[str, BufferPlace]:
    places: dict[str, BufferPlace] = {}
    for name in order:
        first, last = lifetimes[name]
        size = -(-sizes_bytes[name] // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        rivals = sorted(
            (place for place in places.values() if place.first <= last and first <= place.last),
            key=lambda place: place.offset_bytes,
        )
        offset = 0
        for rival in rivals:
            if offset + size <= rival.offset_bytes:
                break
            offset = max(offset, rival.offset_bytes + rival.size_bytes)
        places[name] = BufferPlace(offset, size, first, last)
    return places


def _with_barriers(
    program: Program,
    order: Mapping[BlockStage, Sequence[Statement]],
    places: Mapping[str, BufferPlace],
    ahead: Collection[str],
) -> dict[BlockStage, tuple[ScheduleStep, ...]]:
    """Put a barrier before each statement that touches a byte which another thread wrote or reads still.

    The loop is gone through twice, so that what the end of an iteration leaves to the next one is seen.
    Tiles that are loaded ahead have one barrier in each iteration: behind it this one's are there, and
    the buffers of the one before may be filled again.
    """
    waits: dict[BlockStage, list[bool]] = {stage: [False] * len(order[stage]) for stage in _ORDER}
    written: list[BufferPlace] = []
    read: list[BufferPlace] = []

    def touches(names: set[str], others: Sequence[BufferPlace]) -> bool:
        return any(places[n].overlaps(other) for n in names if n in places for other in others)

    # Carried values get their initial ones before anything else.
    written += [p for name, p in places.items() if program.stored[name].initial is not None]
    for stage in (BlockStage.INVARIANT, BlockStage.LOOP, BlockStage.LOOP, BlockStage.AFTER):
        for i, statement in enumerate(order[stage]):
            if statement.output in ahead and stage is BlockStage.LOOP:
                if i == 0:
                    waits[stage][i] = True
                    written.clear()
                    read.clear()
                continue
            reads, writes = program.reads(statement), program.writes(statement)
            if waits[stage][i] or touches(reads | writes, written) or touches(writes, read):
                waits[stage][i] = True
                written.clear()
                read.clear()
            written += [places[name] for name in writes if name in places]
            read += [places[name] for name in reads if name in places]
    return {
        stage: tuple(map(ScheduleStep, statements, waits[stage]))
        for stage, statements in order.items()
    }


#: A multiprocessor for which kernels are made, at least (an A100's): shared memory of all of its blocks,
#: each block's share beside its own, threads, registers, and how many multiprocessors there are.
_SHARED_BYTES, _OF_BLOCK_BYTES, _MULTIPROCESSORS = 164 << 10, 1 << 10, 108
_THREADS, _REGISTERS = 2048, 65536
#: The least registers of a thread beside products.
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
        most_bytes: of shared memory, so that no fewer blocks are on a multiprocessor at once than before.
    """

    kernel: Kernel
    most_bytes: int


def schedule_with_buffers(
    program: Program, sizes_bytes: Mapping[str, int], ahead: Collection[str], most_bytes: int
) -> BlockSchedule:
    """Return a schedule with as many buffers as there is room for.

    Args:
        program: the block's statements.
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
        device: the dims of its operands.
        item_bytes: of elements that are not wide.
        wide: the operands that are float32, too.
    """
    program = with_partials(lower(kernel, device, wide=wide))
    sizes = _sizes_bytes(program, item_bytes)
    most_bytes = _room(program, schedule(program, sizes).shared_bytes)
    products = [s for s in program.statements[BlockStage.LOOP] if isinstance(s, Multiply)]
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
    loads = [s for s in program.statements[BlockStage.LOOP] if isinstance(s, Load)]
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
