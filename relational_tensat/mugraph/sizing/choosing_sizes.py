"""The sizes of a found graph: all splits by powers of two, of one kernel after the other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.graph.mugraph import Accumulate, Kernel, MuGraph
from relational_tensat.mugraph.graph.well_formed import block_tensors
from relational_tensat.mugraph.search.found import FoundGraph, FoundKernel, Splits, build
from relational_tensat.mugraph.sizing.multiprocessors import Multiprocessors, a100
from relational_tensat.mugraph.sizing.waves import Floats, Sizes, kernel_us

#: No axis of a grid, and no loop, is longer.
_LONGEST = 1024
#: A graph has at most so many combinations of partial results that are tried.
_MOST_PARTS = 64


@dataclass(frozen=True, slots=True)
class Sized:
    """A μGraph with sizes, and what the model says that it takes."""

    graph: MuGraph
    cost_us: float


def sized(
    found: FoundGraph, device: Multiprocessors | None = None, element_bytes: int = 2
) -> Sized | None:
    """Return a found graph at the sizes that the model likes best; None where none fits shared memory.

    Args:
        found: what a search found.
        device: what it shall run on; an A100 by default.
        element_bytes: of an element.
    """
    return _Sizing(found, device or a100(), element_bytes).best()


class _Sizing:
    def __init__(self, found: FoundGraph, device: Multiprocessors, element_bytes: int) -> None:
        self._found = found
        self._device = device
        self._bytes = element_bytes
        units = [((1,) * len(kernel.grid), 1) for kernel in found.kernels]
        self._unit = build(found, units)

    def best(self) -> Sized | None:
        """Return the best; partial results of one kernel are sizes of the next."""
        chosen = self._chosen(0, dict(self._program_sizes()), [])
        if chosen is None:
            return None
        splits, cost = chosen
        return Sized(build(self._found, splits), cost)

    def _program_sizes(self) -> Mapping[str, int]:
        return {d.variable: d.size for dims in self._found.program.inputs.values() for d in dims}

    def _chosen(
        self, place: int, sizes: dict[str, int], before: list[Splits]
    ) -> tuple[list[Splits], float] | None:
        """Return the best splits of a kernel and those after it, and their cost."""
        if place == len(self._found.kernels):
            return before, 0.0
        kernel = self._found.kernels[place]
        step = self._unit.kernels[place]
        splits, costs = self._costs(kernel, step, sizes)
        parts = self._parts(step)
        best: tuple[list[Splits], float] | None = None
        tried: set[tuple[int, ...]] = set()
        for number in np.argsort(costs, kind="stable"):
            cost = float(costs[number])
            made = tuple(splits[number][0][axis] for axis in parts)
            if not math.isfinite(cost) or len(tried) >= _MOST_PARTS:
                break
            if made in tried or (best is not None and cost >= best[1]):
                continue
            tried.add(made)
            omap = step.block.savers[0].omap
            grown = sizes | {omap[axis]: size for axis, size in zip(parts, made, strict=True)}
            rest = self._chosen(place + 1, grown, [*before, splits[number]])
            if rest is not None and (best is None or cost + rest[1] < best[1]):
                best = rest[0], cost + rest[1]
        return best

    def _parts(self, kernel: Kernel) -> tuple[int, ...]:
        """Return the axes of the grid that give partial results."""
        known = self._program_sizes()
        axes = {
            a for s in kernel.block.savers for a, name in enumerate(s.omap) if name not in known
        }
        return tuple(sorted(axes))

    def _costs(
        self, kernel: FoundKernel, step: Kernel, sizes: Mapping[str, int]
    ) -> tuple[list[Splits], Floats]:
        """Return all splits of a kernel, and what each costs."""
        names = [*kernel.grid, *([kernel.loop] if kernel.loop else [])]
        choices = [_parts_of(sizes[name]) for name in names]
        rows = [row for row in itertools.product(*choices) if _divides(names, row, sizes)]
        table = np.array(rows, np.float64).reshape(len(rows), len(names))
        extents = {name: np.full(len(rows), float(size)) for name, size in sizes.items()}
        tile = dict(extents)
        for column, name in enumerate(names):
            tile[name] = tile[name] / table[:, column]
        axes = len(kernel.grid)
        loop = table[:, axes] if kernel.loop else np.ones(len(rows))
        blocks = np.prod(table[:, :axes], axis=1)
        after = tile | ({kernel.loop: tile[kernel.loop] * loop} if _concatenates(step) else {})
        shapes = Sizes(extents, tile, after, blocks, loop)
        tensors = block_tensors(step, self._device_dims())
        costs = kernel_us(step.block, tensors, shapes, self._device, self._bytes)
        return [(tuple(row[:axes]), row[axes] if kernel.loop else 1) for row in rows], costs

    def _device_dims(self) -> Mapping[str, Dims]:
        dims = dict(self._unit.inputs)
        for kernel in self._unit.kernels:
            dims |= {saver.output: saver.dims for saver in kernel.block.savers}
        return dims


def _parts_of(size: int) -> list[int]:
    """Return into how many parts something may be split: powers of two, and all of it."""
    powers = [1 << n for n in range(_LONGEST.bit_length()) if size % (1 << n) == 0]
    return powers if size in powers or size > _LONGEST else [*powers, size]


def _divides(names: Sequence[str], row: Sequence[int], sizes: Mapping[str, int]) -> bool:
    total: dict[str, int] = {}
    for name, parts in zip(names, row, strict=True):
        total[name] = total.get(name, 1) * parts
    return all(sizes[name] % parts == 0 for name, parts in total.items())


def _concatenates(kernel: Kernel) -> bool:
    return any(isinstance(s, Accumulate) and s.kind == "concat" for s in kernel.block.steps)
