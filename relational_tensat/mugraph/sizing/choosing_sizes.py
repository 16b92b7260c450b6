"""The sizes of a found graph: all splits by powers of two, of one kernel after the other.

What powers of two do not divide is split by other divisors, too, or into tiles the last of which is
smaller: these are computed as if they were whole, so the model counts them so.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.dims import Dim, Dims
from relational_tensat.mugraph.graph.mugraph import Accumulate, Kernel, MuGraph
from relational_tensat.mugraph.graph.partial_tiles import tile_size
from relational_tensat.mugraph.graph.well_formed import block_tensors, kernel_tensors
from relational_tensat.mugraph.search.found import (
    FoundGraph,
    FoundKernel,
    Route,
    Splits,
    build,
    library_operation,
)
from relational_tensat.mugraph.sizing.choices import Floats, Sizes
from relational_tensat.mugraph.sizing.libraries import operation_us
from relational_tensat.mugraph.sizing.multiprocessors import Multiprocessors, a100
from relational_tensat.mugraph.sizing.waves import kernel_us

#: No axis of a grid, and no loop, is longer.
_LONGEST = 1024
#: Where fewer powers of two divide a size, its other divisors are tried, too.
_FEW_POWERS = 3
#: Tiles whose last one may be smaller have at most so many elements, powers of two, and at least 8.
_LONGEST_TILE = 1024
_SHORTEST_TILE = 8
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
        route: what a search found.
        device: what it shall run on; an A100 by default.
        libraries: whether operators of libraries may take kernels' places, where they are faster; at least
            one kernel stays.

    Returns:
        One for each alternative of the last kernel that fits shared memory, with the best before it.
    """
    return _Sizing(route, device or a100(), has_libraries=libraries).best()


@dataclass(frozen=True, slots=True)
class _Partial:
    """The first kernels of a graph, with sizes of all variables, partial results' among them."""

    cost_us: float
    sizes: Mapping[str, int]
    kernels: tuple[FoundKernel, ...]
    splits: tuple[Splits, ...]


class _Sizing:
    def __init__(self, route: Route, device: Multiprocessors, *, has_libraries: bool) -> None:
        self._route = route
        self._has_libraries = has_libraries and len(route.alternatives) > 1
        self._device = device
        inputs = route.program.inputs
        self._given = {d.variable: d.size for dims in inputs.values() for d in dims}
        #: By the route's kernels: these at any sizes, and the dims of tensors then; sizes of partial
        #: results are many.
        self._units: dict[tuple[int, ...], tuple[MuGraph, dict[str, Dims]]] = {}

    def best(self) -> list[Sized]:
        """Return the best of each alternative; partial results of one kernel are sizes of the next."""
        partials = [_Partial(0.0, self._given, (), ())]
        *first, last = self._route.alternatives
        for alternatives in first:
            grown = [g for kernel in alternatives for p in partials for g in self._grown(p, kernel)]
            partials = _cheapest_by_sizes(grown)
        found = [self._finished(partials, kernel) for kernel in last]
        return sorted((made for made in found if made), key=lambda made: made.cost_us)

    def _finished(self, partials: Sequence[_Partial], kernel: FoundKernel) -> Sized | None:
        every = (g for partial in partials for g in self._grown(partial, kernel))
        grown = [g for g in every if any(splits is not None for splits in g.splits)]
        if not grown:
            return None
        best = min(grown, key=lambda g: g.cost_us)
        found = FoundGraph(self._route.program, best.kernels, self._route.outputs)
        return Sized(build(found, best.splits), best.cost_us)

    def _grown(self, partial: _Partial, kernel: FoundKernel) -> list[_Partial]:
        """Return the kernels with one more, at its best splits, or as an operator of a library."""
        made = self._split(partial, kernel)
        as_library = self._as_library(partial, kernel)
        return [*made, as_library] if as_library else made

    def _as_library(self, partial: _Partial, kernel: FoundKernel) -> _Partial | None:
        operation = library_operation(kernel) if self._has_libraries else None
        if operation is None:
            return None
        graph = build(
            FoundGraph(self._route.program, (*partial.kernels, kernel), ()), (*partial.splits, None)
        )
        if not graph.wide.isdisjoint(operation.operands):  # libraries read the model's elements
            return None
        cost_us = partial.cost_us + operation_us(operation, kernel_tensors(graph), self._device)
        kernels, splits = (*partial.kernels, kernel), (*partial.splits, None)
        return _Partial(cost_us, partial.sizes, kernels, splits)

    def _split(self, partial: _Partial, kernel: FoundKernel) -> list[_Partial]:
        """Return the kernels with one more, at the best splits for each size of partial results."""
        names = [*kernel.grid, *([kernel.loop] if kernel.loop else [])]
        if any(name not in partial.sizes for name in names):
            return []
        rows, costs, step = self._costs(names, (*partial.kernels, kernel), partial.sizes)
        omaps = (enumerate(saver.omap) for saver in step.block.savers)
        parts = {v: axis for omap in omaps for axis, v in omap if v not in self._given}
        best: dict[tuple[int, ...], _Partial] = {}
        for number in _cheapest_first(names, rows, partial.sizes, costs):
            if not math.isfinite(costs[number]):
                break
            row = rows[number]
            made = tuple(row[axis] for axis in parts.values())
            if made not in best:
                axes = len(kernel.grid)
                splits = (row[:axes], row[axes] if kernel.loop else 1)
                best[made] = _Partial(
                    partial.cost_us + float(costs[number]),
                    {**partial.sizes, **{v: row[axis] for v, axis in parts.items()}},
                    (*partial.kernels, kernel),
                    (*partial.splits, splits),
                )
        return list(best.values())

    def _unsized(self, kernels: tuple[FoundKernel, ...]) -> tuple[MuGraph, dict[str, Dims]]:
        """Return some kernels at any sizes, and the dims of tensors in device memory."""
        key = tuple(map(id, kernels))  # the route keeps them
        if key not in self._units:
            units = [((1,) * len(kernel.grid), 1) for kernel in kernels]
            graph = build(FoundGraph(self._route.program, kernels, ()), units)
            self._units[key] = graph, kernel_tensors(graph)
        return self._units[key]

    def _costs(
        self, names: Sequence[str], kernels: tuple[FoundKernel, ...], sizes: Mapping[str, int]
    ) -> tuple[list[tuple[int, ...]], Floats, Kernel]:
        """Return all splits of the last kernel, of grid and loop, what each costs, and the kernel."""
        (graph, dims), kernel = self._unsized(kernels), kernels[-1]
        step = graph.kernels[-1]
        free = _free_of_divisors(step, kernel, dims, sizes)
        choices = [
            [*_parts_of(sizes[name]), *(_more_parts_of(sizes[name]) if name in free else ())]
            for name in names
        ]
        rows = [row for row in itertools.product(*choices) if _fits(names, row, sizes, free)]
        table = np.array(rows, np.float64).reshape(len(rows), len(names))
        extents = {name: np.full(len(rows), float(size)) for name, size in sizes.items()}
        tile = dict(extents)
        for column, name in enumerate(names):
            tile[name] = tile[name] / table[:, column]
        tile = {name: np.ceil(size) for name, size in tile.items()}
        axes = len(kernel.grid)
        loop = table[:, axes] if kernel.loop else np.ones(len(rows))
        blocks = np.prod(table[:, :axes], axis=1)
        after = dict(tile)
        if _concatenates(step):
            after[kernel.loop] = np.minimum(tile[kernel.loop] * loop, extents[kernel.loop])
        shapes = Sizes(extents, tile, after, blocks, loop)
        return rows, kernel_us(step, dims, shapes, self._device, graph.wide), step


def _cheapest_by_sizes(partials: Iterable[_Partial]) -> list[_Partial]:
    """Return the cheapest for each sizes of partial results, and of these the cheapest."""
    best: dict[tuple[tuple[str, int], ...], _Partial] = {}
    for partial in sorted(partials, key=lambda p: p.cost_us):
        best.setdefault(tuple(sorted(partial.sizes.items())), partial)
    return list(best.values())[:_MOST_FOLLOWED]


def _parts_of(size: int) -> list[int]:
    """Return into how many parts something may be split: powers of two, and all of it; not one part.

    What has too few powers of two may be split by any of its divisors.
    """
    powers = [1 << n for n in range(1, _LONGEST.bit_length()) if size % (1 << n) == 0]
    if len(powers) < _FEW_POWERS:
        return [n for n in range(2, min(size, _LONGEST) + 1) if size % n == 0]
    return powers if size in powers or size > _LONGEST else [*powers, size]


def _more_parts_of(size: int) -> list[int]:
    """Return into how many parts something may be split whose last one is smaller.

    Of tiles of a power of two as many as are needed: each has at least one element.
    """
    tiles = [1 << n for n in range(_LONGEST_TILE.bit_length())]
    parts = {-(-size // tile) for tile in tiles if _SHORTEST_TILE <= tile < size}
    return sorted(n for n in parts if size % n and n <= _LONGEST)


def _free_of_divisors(
    kernel: Kernel, found: FoundKernel, device: Mapping[str, Dims], sizes: Mapping[str, int]
) -> list[str]:
    """Return the variables whose last tile may be smaller: no step has to have all tiles alike.

    Args:
        kernel: the kernel with one part of each variable.
        found: the same without sizes.
        device: dims of tensors in device memory.
        sizes: of variables; what powers of two divide is left as it is.
    """
    result = []
    split = dict.fromkeys([*found.grid, *([found.loop] if found.loop else [])])
    for name in (name for name in split if _more_parts_of(sizes[name])):
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
    """Return into how many parts each variable is split by all axes and the loop together."""
    total: dict[str, int] = {}
    for name, parts in zip(names, row, strict=True):
        total[name] = total.get(name, 1) * parts
    return total


def _fits(
    names: Sequence[str], row: Sequence[int], sizes: Mapping[str, int], free: Collection[str]
) -> bool:
    """Whether splits divide sizes, or leave an element to each tile of what need not be divided."""
    return all(
        sizes[name] % parts == 0 or (name in free and tile_size(sizes[name], parts) > 0)
        for name, parts in _total_parts(names, row).items()
    )


def _cheapest_first(
    names: Sequence[str], rows: Sequence[tuple[int, ...]], sizes: Mapping[str, int], costs: Floats
) -> NDArray[np.intp]:
    """Return the order of splits by cost; of equal ones first those without a smaller last tile."""
    is_smaller = [
        any(sizes[name] % parts for name, parts in _total_parts(names, row).items()) for row in rows
    ]
    return np.lexsort((np.array(is_smaller, np.bool_), costs))


def _concatenates(kernel: Kernel) -> bool:
    return any(isinstance(s, Accumulate) and s.kind == "concat" for s in kernel.block.steps)
