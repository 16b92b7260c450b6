"""In which order a block's statements run, where they lie in shared memory, and where threads wait."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from relational_tensat.mugraph.graph.well_formed import Stage
from relational_tensat.mugraph.kernels.lowering.statements import Program, Statement

#: Where tensors in shared memory begin: at a multiple of so many bytes.
ALIGNMENT_BYTES = 16
_ORDER = (Stage.INVARIANT, Stage.LOOP, Stage.AFTER)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tensor lies in a block's shared memory, and while which statements it is needed.

    Attributes:
        offset_bytes, size_bytes: where.
        first, last: positions of statements, counted through all stages.
    """

    offset_bytes: int
    size_bytes: int
    first: int
    last: int

    def overlaps(self, other: Place) -> bool:
        """Return whether they have a byte in common."""
        return (
            self.offset_bytes < other.offset_bytes + other.size_bytes
            and other.offset_bytes < self.offset_bytes + self.size_bytes
        )


@dataclass(frozen=True, slots=True)
class Step:
    """A statement, and whether threads wait for each other before it."""

    statement: Statement
    waits: bool


@dataclass(frozen=True, slots=True)
class Schedule:
    """The order, the places, the barriers.

    Attributes:
        steps: by stage, in order.
        places: of tensors in shared memory, by name.
        ahead: the tiles that the loop loads ahead, each in buffers one after the other.
        buffers: of such a tile; an iteration computes with one of them while the others are filled.
    """

    steps: Mapping[Stage, tuple[Step, ...]]
    places: Mapping[str, Place]
    ahead: frozenset[str] = frozenset()
    buffers: int = 1

    @property
    def shared_bytes(self) -> int:
        """How much shared memory a block needs."""
        ends = (place.offset_bytes + place.size_bytes for place in self.places.values())
        return max(ends, default=0)

    @property
    def barriers(self) -> Mapping[Stage, int]:
        """How often a block's threads wait: before the loop, in each iteration, after it."""
        return {stage: sum(step.waits for step in steps) for stage, steps in self.steps.items()}


def schedule(
    program: Program,
    sizes_bytes: Mapping[str, int],
    ahead: Collection[str] = (),
    buffers: int = 1,
) -> Schedule:
    """Return a schedule: by depth, memory by lifetimes, barriers where a byte changes hands.

    Args:
        program: what the block does.
        sizes_bytes: of the tensors that lie in shared memory.
        ahead: the tiles that the loop shall load ahead.
        buffers: how many each of these has; with one nothing is loaded ahead.
    """
    ahead = frozenset(ahead if buffers > 1 else ())
    order = {stage: _by_depth(program, program.statements[stage]) for stage in _ORDER}
    order[Stage.LOOP] = tuple(sorted(order[Stage.LOOP], key=lambda s: s.output not in ahead))
    lifetimes = _lifetimes(program, order, sizes_bytes)
    end = len(order[Stage.INVARIANT]) + len(order[Stage.LOOP]) - 1
    for name in ahead:  # the first ones are loaded before the loop
        lifetimes[name] = 0, max(end, lifetimes[name][1])
    room = {
        name: -(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES * (buffers if name in ahead else 1)
        for name, size in sizes_bytes.items()
    }
    places = _placed(lifetimes, room)
    return Schedule(_with_barriers(program, order, places, ahead), places, ahead, buffers)


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
    program: Program, order: Mapping[Stage, Sequence[Statement]], names: Collection[str]
) -> dict[str, tuple[int, int]]:
    """Return the first and the last statement that needs each tensor.

    What comes into the loop from outside, or from one iteration into the next, is needed in all of it.
    """
    begin = len(order[Stage.INVARIANT])
    end = begin + len(order[Stage.LOOP]) - 1
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
) -> dict[str, Place]:
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
) -> dict[str, Place]:
    places: dict[str, Place] = {}
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
        places[name] = Place(offset, size, first, last)
    return places


def _with_barriers(
    program: Program,
    order: Mapping[Stage, Sequence[Statement]],
    places: Mapping[str, Place],
    ahead: Collection[str],
) -> dict[Stage, tuple[Step, ...]]:
    """Put a barrier before each statement that touches a byte which another thread wrote or reads still.

    The loop is gone through twice, so that what the end of an iteration leaves to the next one is seen.
    Tiles that are loaded ahead have one barrier in each iteration: behind it this one's are there, and
    the buffers of the one before may be filled again.
    """
    waits: dict[Stage, list[bool]] = {stage: [False] * len(order[stage]) for stage in _ORDER}
    written: list[Place] = []
    read: list[Place] = []

    def touches(names: set[str], others: Sequence[Place]) -> bool:
        return any(places[n].overlaps(other) for n in names if n in places for other in others)

    # What is carried gets its initial values before anything else.
    written += [p for name, p in places.items() if program.stored[name].initial is not None]
    for stage in (Stage.INVARIANT, Stage.LOOP, Stage.LOOP, Stage.AFTER):
        for i, statement in enumerate(order[stage]):
            if statement.output in ahead and stage is Stage.LOOP:
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
        stage: tuple(map(Step, statements, waits[stage])) for stage, statements in order.items()
    }
