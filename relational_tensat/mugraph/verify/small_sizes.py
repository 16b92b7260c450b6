"""The same μGraph at small sizes: every split by its smallest factor, at most two elements in a tile.

Where a last tile is smaller, it still is: of one element, if no other kernel splits the variable. Program
and μGraph get smaller together, so both need the same index variables. A graph from elsewhere may give
each tensor variables of its own, and rename them where an operator aligns two, as Mirage's graphs do.
Where no tensor has two that are renamed into each other, they are one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from relational_tensat.base.errors import InputError, RelationalTensatError
from relational_tensat.mugraph.graph.dims import Dim, Dims, size_of, variables
from relational_tensat.mugraph.graph.mu_operator import names
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockGraph,
    BlockStep,
    Kernel,
    KernelStep,
    MuGraph,
    Operation,
    RunningMax,
    ThreadGraph,
)
from relational_tensat.mugraph.graph.partial_tiles import partial_splits, tile_size
from relational_tensat.mugraph.graph.rewrites import with_inputs_called
from relational_tensat.mugraph.graph.validity import block_tensors, kernel_tensors, saved_dims
from relational_tensat.tensor.types import AttrValue

#: The extents of a kernel's grid, and the iterations of its loop.
SplitsOf: TypeAlias = Callable[[Kernel], tuple[tuple[int, ...], int]]

#: Of a split whose last tile is smaller; more parts are tested as two.
_LARGEST_FACTOR = 7
#: Into how many parts such a variable is split instead, one after the other; 0 for its smallest factor:
#: where another kernel splits it into tiles that divide, it may have no such size.
_PARTS = (0, 3, 5, 7)
#: Operators that say what becomes of a variable.
RELABELLINGS = frozenset({"rename", "split", "merge", "repeat", "window"})


def shrunk(program: MuGraph, graph: MuGraph) -> tuple[MuGraph, MuGraph] | None:
    """Return a program and its μGraph at the smallest sizes at which they are still the same graphs.

    The program may be a μGraph of the same splits, too.
    None where the two name their index variables differently, or relabel them: sizes are then not free.
    """
    tried = (_resized_both(program, graph, {}, _smallest_splits(graph, parts)) for parts in _PARTS)
    return next((both for both in tried if both is not None), None)


def summed_variables(program: MuGraph, graph: MuGraph) -> frozenset[str]:
    """Return the variables that a sum, a maximum, a mean or a loop of either graph runs over."""
    return _run_over(program) | _run_over(graph)


def with_full_sums(
    program: MuGraph, graph: MuGraph, only: frozenset[str] | None = None
) -> tuple[MuGraph, MuGraph] | None:
    """Return a program and its μGraph with few entries of the result, each computed as at full size.

    Variables that a sum, a maximum, a mean or a loop runs over keep their sizes, and the grid and the loop
    that split them their extents. All operators are the same for each value of the others: of these there
    are as few as in ``shrunk``. None where that has none.

    Args:
        only: of those variables, the ones that keep their sizes; all by default.
    """
    whole = summed_variables(program, graph)
    whole = whole if only is None else whole & only
    sizes = {d.variable: d.size for dims in graph.inputs.values() for d in dims}
    kept = {v: n for v, n in sizes.items() if v in whole}
    tried = (
        _resized_both(program, graph, kept, _splits_of_others(graph, whole, parts))
        for parts in _PARTS
    )
    return next((both for both in tried if both is not None), None)


def _splits_of_others(graph: MuGraph, whole: frozenset[str], parts: int) -> SplitsOf:
    """Return the smallest splits of all but some variables; see ``_smallest_splits``."""
    smallest = _smallest_splits(graph, parts)

    def splits(kernel: Kernel) -> tuple[tuple[int, ...], int]:
        block = kernel.block
        maps = [part.imap for part in block.iterators] + [part.omap for part in block.savers]
        grid = tuple(
            extent if whole & {one[axis] for one in maps} else fewer
            for axis, (extent, fewer) in enumerate(
                zip(block.grid, smallest(kernel)[0], strict=True)
            )
        )
        return grid, block.loop

    return splits


def _run_over(graph: MuGraph) -> frozenset[str]:
    """Return the variables whose values operators, accumulators or loops put together."""
    found: set[str] = set()
    for step in graph.steps:
        inner = step.block.steps if isinstance(step, Kernel) else (step,)
        for one in inner:
            for part in one.steps if isinstance(one, ThreadGraph) else (one,):
                found.update(_variables_over(part))
        if isinstance(step, Kernel):
            found.update(iterator.fmap for iterator in step.block.iterators)
    return frozenset(found - {""})


def _variables_over(step: Operation | Accumulate | RunningMax) -> tuple[str, ...]:
    match step:
        case Operation():
            return names(step.attrs, "over") if "over" in step.attrs else ()
        case Accumulate():
            return step.along
        case RunningMax():
            return step.over


def _resized_both(
    program: MuGraph, graph: MuGraph, kept: Mapping[str, int], splits: SplitsOf
) -> tuple[MuGraph, MuGraph] | None:
    """Return both at the smallest sizes that go with splits, some at given sizes; None where not free."""
    if program.inputs != graph.inputs or any(_relabels(g) for g in (program, graph)):
        return None
    try:
        sizes = {**_small_sizes(graph, splits), **kept}
        return resized(program, sizes, splits), resized(graph, sizes, splits)
    except InputError:
        return None


def _relabels(graph: MuGraph) -> bool:
    kernels = [s for k in graph.kernels for s in k.block.steps if isinstance(s, Operation)]
    steps = [step for step in graph.steps if isinstance(step, Operation)]
    return any(step.op in RELABELLINGS for step in (*steps, *kernels))


def _small_sizes(graph: MuGraph, new_splits: SplitsOf) -> dict[str, int]:
    """Return a size for each variable of an input that all kernels' splits divide, or do not, as before.

    Raises:
        InputError: a variable has none.
    """
    dims = kernel_tensors(graph)
    sizes: dict[str, int] = {}
    partial: dict[str, set[int]] = {}
    for kernel in graph.kernels:
        grid, loop = new_splits(kernel)
        small_block = replace(kernel.block, grid=grid, loop=loop)
        both = zip(_splits(kernel.block), _splits(small_block), strict=True)
        for (tensor, variable, splits), (_, _, fewer) in both:
            whole, parts = size_of(dims[tensor], variable), math.prod(splits)
            if whole % parts:
                partial.setdefault(variable, set()).add(math.prod(fewer))
                continue
            small = math.prod(fewer) * min(whole // parts, 2)
            sizes[variable] = math.lcm(sizes.get(variable, 1), small)
    for variable, all_parts in partial.items():
        sizes[variable] = _size_with_smaller_tiles(variable, sizes.get(variable, 1), all_parts)
    for kind in graph.inputs.values():
        for dim in kind:
            sizes.setdefault(dim.variable, min(dim.size, 2))
    return sizes


def _size_with_smaller_tiles(variable: str, divisor: int, all_parts: set[int]) -> int:
    """Return the smallest multiple of a divisor whose last tile is smaller in each of several splits.

    Raises:
        InputError: no such size is small.
    """
    for size in range(divisor, 4 * divisor * max(all_parts) + 1, divisor):
        if all(size % parts and tile_size(size, parts) for parts in all_parts):
            return size
    raise InputError(f"{variable} has no small size whose last tiles are as they were")


def _splits(block: BlockGraph) -> Iterator[tuple[str, str, list[int]]]:
    """Yield each tensor that a kernel loads, with each of its variables that is split, and how often."""
    for it in block.iterators:
        for variable in sorted({*it.imap, it.fmap} - {""}):
            splits = [n for name, n in zip(it.imap, block.grid, strict=True) if name == variable]
            yield it.tensor, variable, [*splits, *([block.loop] if it.fmap == variable else [])]


def resized(graph: MuGraph, sizes: Mapping[str, int], splits: SplitsOf) -> MuGraph:
    """Return a μGraph at other sizes.

    Args:
        graph: the μGraph, or a program.
        sizes: of its inputs' variables.
        splits: the extents of a kernel's grid then, and how many iterations its loop has.

    Raises:
        InputError: splits do not divide what one kernel leaves to the next.
    """
    inputs = {
        name: tuple(Dim(dim.variable, sizes[dim.variable]) for dim in dims)
        for name, dims in graph.inputs.items()
    }
    steps: list[KernelStep] = []
    for step in graph.steps:
        if isinstance(step, Kernel):
            device = kernel_tensors(replace(graph, inputs=inputs, steps=tuple(steps), outputs=()))
            step = _resized_kernel(step, device, splits)
        steps.append(step)
    small = replace(graph, inputs=inputs, steps=tuple(steps))
    kernel_tensors(small)
    return small


def _resized_kernel(kernel: Kernel, device: dict[str, Dims], splits: SplitsOf) -> Kernel:
    block = kernel.block
    grid, loop = splits(kernel)
    bare = BlockGraph(grid, loop, block.iterators, block.steps, ())
    tiles = block_tensors(Kernel(kernel.name, bare), device).dims
    savers = []
    for saver in block.savers:
        sizes = saved_dims(saver, tiles[saver.tile], grid)
        savers.append(
            replace(saver, dims=tuple(Dim(d.variable, sizes[d.variable]) for d in saver.dims))
        )
    return Kernel(kernel.name, replace(bare, savers=tuple(savers)))


def _smallest_splits(graph: MuGraph, parts: int = 0) -> SplitsOf:
    """Return each extent's smallest factor.

    Args:
        parts: of what is split into tiles the last of which is smaller; 0 for smallest factors there, too,
            or 2, if these are large.
    """
    device = kernel_tensors(graph)

    def splits(kernel: Kernel) -> tuple[tuple[int, ...], int]:
        block = kernel.block
        partial = partial_splits(block, device).values()
        places = {axis for split in partial for axis in split.axes}
        places |= {len(block.grid) for split in partial if split.is_in_loop}
        fewer = [_smallest_factor(extent) for extent in (*block.grid, block.loop)]
        for place in places:
            fewer[place] = parts or (fewer[place] if fewer[place] <= _LARGEST_FACTOR else 2)
        return tuple(fewer[:-1]), fewer[-1]

    return splits


def _smallest_factor(number: int) -> int:
    return next((f for f in range(2, number + 1) if number % f == 0), 1)


#: Relabellings that leave sizes no freedom.
_OTHERS = RELABELLINGS - {"rename"}
#: Attributes that name variables.
_NAMING = ("over", "variable", "variables", "into")


def with_variables_of(program: MuGraph, graph: MuGraph) -> MuGraph | None:
    """Return a μGraph with the inputs' index variables of its program, and no ``rename``.

    None if its inputs have other sizes, something else than ``rename`` relabels, or one tensor has two
    variables that would be one.
    """
    operations = list(_operations(graph))
    if any(step.op in _OTHERS for step in operations) or any(
        iterator.windows for kernel in graph.kernels for iterator in kernel.block.iterators
    ):
        return None
    called = _names(program, graph, operations)
    if called is None or any(
        len({called.get(v, v) for v in variables(dims)}) < len(dims) for dims in _all_dims(graph)
    ):
        return None
    renamed = _Renamed(called).graph(graph)
    inputs = dict(zip(graph.inputs, program.inputs.values(), strict=True))
    renamed = with_inputs_called(replace(renamed, inputs=inputs), list(program.inputs))
    try:
        kernel_tensors(renamed)
    except RelationalTensatError:
        return None
    return renamed


def _names(
    program: MuGraph, graph: MuGraph, operations: Sequence[Operation]
) -> Mapping[str, str] | None:
    """Return what each of a graph's variables is called; None where two of the program's were one."""
    equal = [
        (f"own {step.attrs['variable']}", f"own {step.attrs['into']}")
        for step in operations
        if step.op == "rename"
    ]
    for own, given in zip(graph.inputs.values(), program.inputs.values(), strict=True):
        if [dim.size for dim in own] != [dim.size for dim in given]:
            return None
        pairs = zip(variables(own), variables(given), strict=True)
        equal += [(f"own {mine}", f"program's {theirs}") for mine, theirs in pairs]
    group_of: dict[str, set[str]] = {}
    for pair in equal:
        together = set().union(*(group_of.get(name, {name}) for name in pair))
        group_of |= dict.fromkeys(together, together)
    called = {}
    for dims in _all_dims(graph):
        for variable in variables(dims):
            group = group_of.get(f"own {variable}", set())
            theirs = [name for name in group if name.startswith("program's ")]
            if len(theirs) > 1:
                return None
            first = min((name for name in group), default=f"own {variable}")
            called[variable] = theirs[0].removeprefix("program's ") if theirs else first
    return called


def _operations(graph: MuGraph) -> Iterator[Operation]:
    for step in graph.steps:
        for inner in step.block.steps if isinstance(step, Kernel) else (step,):
            if isinstance(inner, ThreadGraph):
                yield from inner.steps
            elif isinstance(inner, Operation):
                yield inner


def _all_dims(graph: MuGraph) -> Iterator[Dims]:
    device = kernel_tensors(graph)
    yield from device.values()
    for kernel in graph.kernels:
        yield from block_tensors(kernel, device).dims.values()


class _Renamed:
    """Writes graphs with other names of variables; the result of a ``rename`` is its operand.

    Args:
        called: the new names.
    """

    def __init__(self, called: Mapping[str, str]) -> None:
        self._called = called

    def graph(self, graph: MuGraph) -> MuGraph:
        same: dict[str, str] = {}
        steps: list[KernelStep] = []
        for step in graph.steps:
            if isinstance(step, Kernel):
                steps.append(replace(step, block=self._block(step.block, same)))
            elif step.op == "rename":
                same[step.output] = same.get(step.operands[0], step.operands[0])
            else:
                steps.append(self._operation(step, same))
        outputs = tuple(same.get(name, name) for name in graph.outputs)
        return replace(graph, steps=tuple(steps), outputs=outputs, rows=())

    def _block(self, block: BlockGraph, device: Mapping[str, str]) -> BlockGraph:
        iterators = tuple(
            replace(
                it, tensor=device.get(it.tensor, it.tensor), imap=self._all(it.imap),
                fmap=self._one(it.fmap),
            )
            for it in block.iterators
        )  # fmt: skip
        same: dict[str, str] = {}
        steps: list[BlockStep] = []
        for step in block.steps:
            if isinstance(step, Operation) and step.op == "rename":
                same[step.output] = same.get(step.operands[0], step.operands[0])
            else:
                steps.append(self._step(step, same))
        savers = tuple(
            replace(
                saver, tile=same.get(saver.tile, saver.tile), omap=self._all(saver.omap),
                dims=tuple(Dim(self._one(d.variable), d.size, d.whole) for d in saver.dims),
            )
            for saver in block.savers
        )  # fmt: skip
        return replace(block, iterators=iterators, steps=tuple(steps), savers=savers)

    def _step(self, step: BlockStep, same: Mapping[str, str]) -> BlockStep:
        match step:
            case Operation():
                return self._operation(step, same)
            case ThreadGraph():
                inner = tuple(self._operation(each, same) for each in step.steps)
                return replace(step, steps=inner)
            case RunningMax():
                operand = same.get(step.operand, step.operand)
                return replace(step, operand=operand, over=self._all(step.over))
            case Accumulate():
                return replace(
                    step,
                    operand=same.get(step.operand, step.operand),
                    along=self._all(step.along),
                    rescale=same.get(step.rescale, step.rescale),
                )

    def _operation(self, step: Operation, same: Mapping[str, str]) -> Operation:
        attrs = {
            name: self._attr(value) if name in _NAMING else value
            for name, value in step.attrs.items()
        }
        operands = tuple(same.get(name, name) for name in step.operands)
        return replace(step, operands=operands, attrs=attrs)

    def _attr(self, value: AttrValue) -> AttrValue:
        if isinstance(value, tuple):
            return tuple(map(self._attr, value))
        return self._one(value) if isinstance(value, str) else value

    def _all(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(map(self._one, names))

    def _one(self, name: str) -> str:
        return self._called.get(name, name)
