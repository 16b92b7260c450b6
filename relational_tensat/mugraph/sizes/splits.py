"""The sizes of found graphs: all splits of one kernel after the other, and the cheapest of them.

Grids and loops split variables by powers of two. Sizes that these do not divide are split by other
divisors, too, or into tiles the last of which is smaller. Such a tile is counted as if it were whole, as it
is computed. The partial results of the kernels before one are sizes of the next, so a few combinations are
followed, the cheapest ones.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.dims import Dim, Dims, with_sizes
from relational_tensat.mugraph.graph.mugraph import Accumulate, Kernel, MuGraph
from relational_tensat.mugraph.graph.partial_tiles import tile_size
from relational_tensat.mugraph.graph.validity import block_tensors
from relational_tensat.mugraph.search.routes import (
    FoundGraph,
    FoundKernel,
    Route,
    Splits,
    build,
    library_operation,
    unit_kernel,
    with_condition_loads,
)
from relational_tensat.mugraph.sizes.cost_model import Traffic, least_kernel_us, operation_us
from relational_tensat.mugraph.sizes.waves import Floats, Multiprocessors, Sizes, a100, kernel_times

#: No axis of a grid, and no loop, is longer.
_LONGEST = 1024
#: Where fewer powers of two divide a size, its other divisors are tried, too.
_FEW_POWERS = 3
#: Tiles whose last one may be smaller have at most so many elements, powers of two, and at least 8.
_LONGEST_TILE = 1024
SHORTEST_TILE = 8


@dataclass(frozen=True, slots=True)
class KernelSplits:
    """All choices for a kernel.

    Attributes:
        kernel: without sizes.
        step: the same with one part of each variable.
        names: the variables of the grid's axes, then the loop's, if it has one.
        rows: a choice a row: into how many parts each of them is split.
        is_smaller: of each choice, whether some last tile is smaller.
    """

    kernel: FoundKernel
    step: Kernel
    names: tuple[str, ...]
    rows: NDArray[np.int64]
    is_smaller: NDArray[np.bool_]

    def of(self, row: int) -> tuple[tuple[int, ...], int]:
        """Return the grid and the loop of a choice."""
        parts = tuple(int(n) for n in self.rows[row])
        axes = len(self.kernel.grid)
        return parts[:axes], parts[axes] if self.kernel.loop else 1

    @property
    def made(self) -> dict[str, int]:
        """The variables that count partial results of the kernel, each with its axis of the grid."""
        omaps = (enumerate(saver.omap) for saver in self.step.block.savers)
        return {v: axis for omap in omaps for axis, v in omap if v not in self.kernel.grid}

    def sizes(self, extents: Sequence[Mapping[str, int]]) -> Sizes:
        """Return all choices at some sizes of variables, then all at the next, and so on."""
        count, times = len(self.rows), len(extents)
        whole = {
            name: np.repeat(np.array([of[name] for of in extents], np.float64), count)
            for name in (extents[0] if extents else ())
        }
        table = np.tile(self.rows.astype(np.float64), (times, 1))
        tile = dict(whole)
        for column, name in enumerate(self.names):
            tile[name] = tile[name] / table[:, column]
        tile = {name: np.ceil(size) for name, size in tile.items()}
        axes, loop = len(self.kernel.grid), np.ones(count * times)
        after = dict(tile)
        if self.kernel.loop:
            loop = table[:, axes]
        if any(isinstance(s, Accumulate) and s.kind == "concat" for s in self.step.block.steps):
            name = self.kernel.loop
            after[name] = np.minimum(tile[name] * loop, whole[name])
        blocks: Floats = np.prod(table[:, :axes], axis=1)
        return Sizes(whole, tile, after, blocks, loop)


def _kernel_splits(
    kernel: FoundKernel, step: Kernel, device: Mapping[str, Dims], given: Mapping[str, int]
) -> KernelSplits:
    """Return all choices for a kernel; none where it splits what is no variable of the program.

    Args:
        kernel: without sizes.
        step: with one part of each variable.
        device: dims of tensors in device memory then.
        given: sizes of the program's variables.
    """
    names = (*kernel.grid, *([kernel.loop] if kernel.loop else []))
    rows: list[tuple[int, ...]] = []
    if given.keys() >= set(names):
        free = _free_of_divisors(step, kernel, device, given)
        choices = [
            [*_parts_of(given[name]), *(more_parts_of(given[name]) if name in free else ())]
            for name in names
        ]
        rows = [row for row in itertools.product(*choices) if _fits(names, row, given, free)]
    smaller = [
        any(given[name] % parts for name, parts in _total_parts(names, row).items()) for row in rows
    ]
    table = np.array(rows, np.int64).reshape(len(rows), len(names))
    return KernelSplits(kernel, step, names, table, np.array(smaller, np.bool_))


def _parts_of(size: int) -> list[int]:
    """Return into how many parts something may be split: powers of two, and all of it; not one part.

    A size with too few powers of two may be split by any of its divisors.
    """
    powers = [1 << n for n in range(1, _LONGEST.bit_length()) if size % (1 << n) == 0]
    if len(powers) < _FEW_POWERS:
        return [n for n in range(2, min(size, _LONGEST) + 1) if size % n == 0]
    return powers if size in powers or size > _LONGEST else [*powers, size]


def more_parts_of(size: int) -> list[int]:
    """Return into how many parts something may be split whose last one is smaller.

    Of tiles of a power of two as many as are needed: each has at least one element.
    """
    tiles = [1 << n for n in range(_LONGEST_TILE.bit_length())]
    parts = {-(-size // tile) for tile in tiles if SHORTEST_TILE <= tile < size}
    return sorted(n for n in parts if size % n and n <= _LONGEST)


def _free_of_divisors(
    kernel: Kernel, found: FoundKernel, device: Mapping[str, Dims], sizes: Mapping[str, int]
) -> list[str]:
    """Return the variables whose last tile may be smaller: no step has to have all tiles alike.

    Args:
        kernel: the kernel with one part of each variable.
        found: the same without sizes.
        device: dims of tensors in device memory.
        sizes: of variables; sizes that powers of two divide are left as they are.
    """
    result = []
    split = dict.fromkeys([*found.grid, *([found.loop] if found.loop else [])])
    for name in (name for name in split if more_parts_of(sizes[name])):
        grid, loop = (
            tuple(2 if v == name else 1 for v in found.grid),
            2 if found.loop == name else 1,
        )
        size = 2 * math.prod(grid) * loop - 1
        dims = {
            tensor: tuple(
                Dim(d.variable, size if d.variable == name else d.size) for d in of_tensor
            )
            for tensor, of_tensor in device.items()
        }
        block = replace(kernel.block, grid=grid, loop=loop, savers=())
        try:
            block_tensors(Kernel(kernel.name, block), dims)
        except InputError:
            continue
        result.append(name)
    return result


def _total_parts(names: Sequence[str], row: Sequence[int]) -> dict[str, int]:
    total: dict[str, int] = {}
    for name, parts in zip(names, row, strict=True):
        total[name] = total.get(name, 1) * parts
    return total


def _fits(
    names: Sequence[str], row: Sequence[int], sizes: Mapping[str, int], free: Collection[str]
) -> bool:
    return all(
        sizes[name] % parts == 0 or (name in free and tile_size(sizes[name], parts) > 0)
        for name, parts in _total_parts(names, row).items()
    )


#: So many combinations of sizes of partial results are followed to the next kernel, the cheapest ones.
_MOST_FOLLOWED = 32


@dataclass(frozen=True, slots=True)
class Sized:
    """A μGraph with sizes, and what the model says that it takes."""

    graph: MuGraph
    cost_us: float


def sized(
    route: Route, device: Multiprocessors | None = None, *, libraries: bool = False
) -> list[Sized]:
    """Return the μGraphs of a route at the sizes that the model likes best, cheapest first.

    Args:
        route: the route that a search found.
        device: the GPU that it shall run on; an A100 by default.
        libraries: whether operators of libraries may take kernels' places, where they are faster; at least
            one kernel stays.

    Returns:
        One for each alternative of the last kernel that fits shared memory, with the best before it.
    """
    return Sizing(route.program, device or a100(), has_libraries=libraries).sized(route)


@dataclass(frozen=True, slots=True)
class Partial:
    """The first kernels of a graph.

    Attributes:
        cost_us: of all of them.
        sizes: of all variables, partial results' among them.
        kernels, splits: these, and how they are split.
    """

    cost_us: float
    sizes: Mapping[str, int]
    kernels: tuple[FoundKernel, ...]
    splits: tuple[Splits, ...]

    @property
    def has_kernels(self) -> bool:
        """Whether some are no operators of libraries."""
        return any(splits is not None for splits in self.splits)

    @property
    def wide(self) -> frozenset[str]:
        """The tensors that they store as float32."""
        return frozenset(name for kernel in self.kernels for name in kernel.wide)


#: The kernels before one: for each, its possible forms.
Prefix: TypeAlias = tuple[tuple[FoundKernel, ...], ...]


@dataclass(frozen=True, slots=True)
class _Unsized:
    """A kernel at any sizes, beside the tensors in device memory that it may load.

    Attributes:
        device: their dims, with one part of each variable; and what it stores.
        wide: those of them that are float32.
        splits: all choices for it.
    """

    device: Mapping[str, Dims]
    wide: frozenset[str]
    splits: KernelSplits


class Sizing:
    """Sizes of the ways to compute a program; common beginnings are sized once.

    Args:
        device: the GPU that it shall run on.
        has_libraries: see ``sized``.
    """

    def __init__(self, program: MuGraph, device: Multiprocessors, *, has_libraries: bool) -> None:
        self._device = device
        self._program = program
        self._has_libraries = has_libraries
        self._given = {d.variable: d.size for dims in program.inputs.values() for d in dims}
        #: By ids of kernels, which are kept beside them so that the ids stay theirs.
        self._partials: dict[tuple[int, ...], tuple[Prefix, list[Partial]]] = {}
        self._tensors: dict[tuple[int, ...], tuple[tuple[FoundKernel, ...], dict[str, Dims]]] = {}
        #: By kernel, and the dims of what it loads.
        self._unsized: dict[tuple[int, tuple[Dims, ...]], tuple[FoundKernel, _Unsized]] = {}

    def sized(self, route: Route, below_us: float = math.inf, most: int = 1) -> list[Sized]:
        """Return the best of each alternative of a route's last kernel, cheapest first.

        Args:
            below_us: slower ones need not be returned.
            most: of each alternative, so many, at other sizes of the last kernel or of those before it.
        """
        *first, last = route.alternatives
        partials = self.partials(tuple(first))
        endings = (e for kernel in last for e in self._endings(partials, kernel, below_us, most))
        made = (
            Sized(build(FoundGraph(self._program, e.kernels, route.outputs), e.splits), e.cost_us)
            for e in endings
        )
        return sorted(made, key=lambda graph: graph.cost_us)

    def partials(self, prefix: Prefix) -> list[Partial]:
        """Return the first kernels of a graph at the sizes that are followed, cheapest first."""
        if not prefix:
            return [Partial(0.0, self._given, (), ())]
        key = tuple(map(id, prefix))
        if key not in self._partials:
            before = self.partials(prefix[:-1])
            grown = (g for kernel in prefix[-1] for g in self._grown(before, kernel))
            # the cheapest for each sizes of partial results, and of these the cheapest
            best: dict[tuple[tuple[str, int], ...], Partial] = {}
            for partial in sorted(grown, key=lambda p: p.cost_us):
                best.setdefault(tuple(sorted(partial.sizes.items())), partial)
            self._partials[key] = prefix, list(best.values())[:_MOST_FOLLOWED]
        return self._partials[key][1]

    def _endings(
        self, partials: Sequence[Partial], kernel: FoundKernel, below_us: float, most: int
    ) -> list[Partial]:
        """Return the cheapest graphs that end in a kernel; none where none fits, or all take too long."""
        worth = [p for p in partials if p.cost_us + self._least_us(p, kernel) <= below_us]
        found: list[Partial] = []
        for unsized, some in self._alike(worth, kernel):
            costs, busy = self._costs(unsized, some)
            total = costs + np.repeat([p.cost_us for p in some], len(unsized.splits.rows))
            if total.size:
                smaller = np.tile(unsized.splits.is_smaller, len(some))
                for row in np.lexsort((smaller, busy, total))[:most].tolist():
                    found += self._with(unsized, some, row, costs)
        found += [made for p in worth if (made := self._as_library(p, kernel)) and made.has_kernels]
        return sorted(found, key=lambda made: made.cost_us)[:most]

    def _grown(self, partials: Sequence[Partial], kernel: FoundKernel) -> Iterator[Partial]:
        """Yield kernels with one more: at its best splits for each size of its parts, or of a library."""
        for unsized, some in self._alike(partials, kernel):
            (costs, busy), count = self._costs(unsized, some), len(unsized.splits.rows)
            made = unsized.splits.rows[:, list(unsized.splits.made.values())]
            for place in range(len(some)):
                own = slice(place * count, (place + 1) * count)
                order = np.lexsort((unsized.splits.is_smaller, busy[own], costs[own]))
                _, first = np.unique(made[order], axis=0, return_index=True)
                for row in sorted(first):
                    yield from self._with(unsized, some, place * count + int(order[row]), costs)
        for partial in partials:
            as_library = self._as_library(partial, kernel)
            if as_library:
                yield as_library

    def _with(
        self, unsized: _Unsized, partials: Sequence[Partial], row: int, costs: Floats
    ) -> list[Partial]:
        """Return the kernels that a row of ``_costs`` is of; none if the last one is too large."""
        splits = unsized.splits
        place, choice = divmod(row, len(splits.rows))
        partial, cost_us = partials[place], float(costs[row])
        if not math.isfinite(cost_us):
            return []
        sizes = {name: int(splits.rows[choice, axis]) for name, axis in splits.made.items()}
        return [
            Partial(
                partial.cost_us + cost_us,
                {**partial.sizes, **sizes},
                (*partial.kernels, splits.kernel),
                (*partial.splits, splits.of(choice)),
            )
        ]

    def _as_library(self, partial: Partial, kernel: FoundKernel) -> Partial | None:
        operation = library_operation(kernel) if self._has_libraries else None
        if operation is None or not partial.wide.isdisjoint(operation.operands):
            return None  # libraries read the model's elements
        dims = {
            name: with_sizes(kind, partial.sizes)
            for name, kind in self._tensors_after((*partial.kernels, kernel)).items()
            if name in (*operation.operands, operation.output)
        }
        cost_us = partial.cost_us + operation_us(operation, dims, self._device)
        kernels, splits = (*partial.kernels, kernel), (*partial.splits, None)
        return Partial(cost_us, partial.sizes, kernels, splits)

    def _least_us(self, partial: Partial, kernel: FoundKernel) -> float:
        """Return a lower bound of a kernel's time after some others, for all sizes."""
        tensors = self._tensors_after(partial.kernels)
        loads = [
            Traffic(
                with_sizes(tensors[name], partial.sizes),
                name in partial.wide,
                name in self._program.conditions,
            )
            for name, _ in kernel.loads
        ]
        return least_kernel_us(loads, self._device)

    def _alike(
        self, partials: Sequence[Partial], kernel: FoundKernel
    ) -> Iterator[tuple[_Unsized, list[Partial]]]:
        """Yield partials with a kernel after them, together where this loads tensors of the same dims."""
        groups: dict[int, tuple[_Unsized, list[Partial]]] = {}
        for partial in partials:
            unsized = self._after(partial, kernel)
            groups.setdefault(id(unsized), (unsized, []))[1].append(partial)
        yield from groups.values()

    def _after(self, partial: Partial, kernel: FoundKernel) -> _Unsized:
        device = self._tensors_after(partial.kernels)
        key = id(kernel), tuple(device[name] for name, _ in kernel.loads)
        if key not in self._unsized:
            bare = unit_kernel(kernel, device, list(self._given))
            step = with_condition_loads(bare, self._program.conditions)
            splits = _kernel_splits(kernel, step, device, self._given)
            self._unsized[key] = kernel, _Unsized(device, partial.wide, splits)
        return self._unsized[key][1]

    def _tensors_after(self, kernels: tuple[FoundKernel, ...]) -> dict[str, Dims]:
        """Return the tensors in device memory after some kernels, with one part of each variable."""
        if not kernels:
            return dict(self._program.inputs)
        key = tuple(map(id, kernels))
        if key not in self._tensors:
            before = self._tensors_after(kernels[:-1])
            made = unit_kernel(kernels[-1], before, list(self._given)).block.savers
            self._tensors[key] = kernels, before | {saver.output: saver.dims for saver in made}
        return self._tensors[key][1]

    def _costs(self, unsized: _Unsized, partials: Sequence[Partial]) -> tuple[Floats, Floats]:
        """Return what a kernel and its blocks take: all its splits after the first partial, then others."""
        splits = unsized.splits
        sizes = splits.sizes([partial.sizes for partial in partials])
        return kernel_times(
            splits.step, unsized.device, sizes, self._device, unsized.wide, self._program.inputs
        )
