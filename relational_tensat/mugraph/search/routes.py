"""The finds of a search: kernels without sizes, the ways through them, the μGraph at given sizes.

A kernel's steps are the cheapest derivation of its terms: extraction, as of any e-graph, from a
configuration's e-classes. A ``SearchBound`` leaves out what cannot become cheaper than what was found.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

import numpy as np

from relational_tensat.extract.extraction import extract
from relational_tensat.extract.extraction_options import ExtractionOptions
from relational_tensat.extract.problem import UNUSED, ExtractionProblem, topological_order
from relational_tensat.mugraph.graph.dims import Dim, Dims, variables
from relational_tensat.mugraph.graph.mu_operator import names
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockGraph,
    BlockStep,
    FoundRow,
    InputIterator,
    Kernel,
    KernelStep,
    MuGraph,
    Operation,
    Saver,
)
from relational_tensat.mugraph.graph.operators import mu_operator
from relational_tensat.mugraph.graph.partial_tiles import LOOP
from relational_tensat.mugraph.graph.validity import BlockStage, block_tensors, saved_dims
from relational_tensat.mugraph.search.block_search import BlockSearch
from relational_tensat.mugraph.search.block_terms import Operand, TermDerivation, step_of
from relational_tensat.mugraph.search.structure import BlockConfiguration, part_of


@dataclass(frozen=True, slots=True)
class FoundKernel:
    """A kernel without sizes: all maps follow from the index variables.

    Attributes:
        loads: the tensors that it reads, each with its tile's name.
        grid: the variables that the axes of the grid split.
        loop: the variable that the loop traverses; empty for no loop.
        steps: the steps of a block.
        stores: tiles, each with its result's name.
        wide: the results that are no tensors of the program, but sums of parts: float32.
        rows: of the search that it came from.
    """

    loads: tuple[tuple[str, str], ...]
    grid: tuple[str, ...]
    loop: str
    steps: tuple[BlockStep, ...]
    stores: tuple[tuple[str, str], ...]
    wide: tuple[str, ...] = ()
    rows: tuple[FoundRow, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class FoundGraph:
    """Kernels that compute a program, in order."""

    program: MuGraph
    kernels: tuple[FoundKernel, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Route:
    """A way to compute a program by kernels, each of which may be any of several that store the same.

    Attributes:
        alternatives: for each kernel, in order, its possible forms.
    """

    program: MuGraph
    alternatives: tuple[tuple[FoundKernel, ...], ...]
    outputs: tuple[str, ...]

    def graphs(self) -> Iterator[FoundGraph]:
        """Yield every choice."""
        for kernels in itertools.product(*self.alternatives):
            yield FoundGraph(self.program, kernels, self.outputs)


#: How often each axis of a kernel's grid splits its variable, and how many iterations its loop has; None if
#: an operator of a library takes the kernel's place.
Splits = tuple[tuple[int, ...], int] | None


def library_operation(kernel: FoundKernel) -> Operation | None:
    """Return the operator of a library that does what a kernel does, if it is one.

    Blocks may do parts of it, and a loop add them up; but what they store is whole, and no wide tensor.
    """
    if kernel.wide or len(kernel.stores) != 1 or not kernel.steps:
        return None
    first, *others = kernel.steps
    ((tile, output),) = kernel.stores
    tensors = {name: tensor for tensor, name in kernel.loads}
    if not isinstance(first, Operation) or set(first.operands) != tensors.keys():
        return None
    over = names(first.attrs, "over") if "over" in first.attrs else ()
    if not set(kernel.grid).isdisjoint(over):
        return None
    if kernel.loop in over:  # what iterations add up
        is_whole = others == [Accumulate(first.output, tile)] and first.op in ("matmul", "sum")
    else:
        is_whole = not others and first.output == tile and not kernel.loop
    if not is_whole:
        return None
    operands = tuple(tensors[name] for name in first.operands)
    return Operation(first.op, operands, output, first.attrs)


def build(found: FoundGraph, splits: Sequence[Splits]) -> MuGraph:
    """Return the μGraph at the sizes of the found graph's program.

    Args:
        found: the found kernels.
        splits: of each kernel; None for operators of a library.

    Raises:
        InputError: they do not divide the sizes.
    """
    device: dict[str, Dims] = dict(found.program.inputs)
    order = list(dict.fromkeys(v for dims in device.values() for v in variables(dims)))
    steps: list[KernelStep] = []
    for number, (kernel, split) in enumerate(zip(found.kernels, splits, strict=True), 1):
        if split is None:
            operation = library_operation(kernel)
            assert operation is not None
            kinds = [device[name] for name in operation.operands]
            device[operation.output] = mu_operator(operation.op).infer(kinds, operation.attrs)
            steps.append(operation)
            continue
        made = _sized(f"k{number}", kernel, device, *split, order)
        device.update({saver.output: saver.dims for saver in made.block.savers})
        steps.append(made)
    rows = tuple(
        replace(row, kernel=f"k{number}")
        for number, (kernel, split) in enumerate(zip(found.kernels, splits, strict=True), 1)
        for row in (kernel.rows if split is not None else ())
    )
    graph = MuGraph(found.program.name, found.program.inputs, tuple(steps), found.outputs, rows)
    return with_conditions(graph, found.program.conditions)


def with_conditions(graph: MuGraph, conditions: frozenset[str]) -> MuGraph:
    """Return a μGraph whose kernels load some inputs as bools."""
    if not conditions:
        return graph
    steps = tuple(
        with_condition_loads(step, conditions) if isinstance(step, Kernel) else step
        for step in graph.steps
    )
    return replace(graph, steps=steps, conditions=conditions)


def with_condition_loads(kernel: Kernel, conditions: frozenset[str]) -> Kernel:
    """Return a kernel that loads some inputs as bools."""
    iterators = tuple(
        replace(iterator, is_condition=iterator.tensor in conditions)
        for iterator in kernel.block.iterators
    )
    return replace(kernel, block=replace(kernel.block, iterators=iterators))


def unit_kernel(kernel: FoundKernel, device: Mapping[str, Dims], order: Sequence[str]) -> Kernel:
    """Return a kernel with one part of each variable.

    Args:
        device: dims of tensors in device memory.
        order: of variables in results.
    """
    return _sized("kernel", kernel, device, (1,) * len(kernel.grid), 1, order)


def _sized(
    name: str,
    kernel: FoundKernel,
    device: Mapping[str, Dims],
    grid: tuple[int, ...],
    loop: int,
    order: Sequence[str],
) -> Kernel:
    """Return a kernel with sizes; ``order`` is of variables in results."""
    iterators = tuple(_iterator(kernel, tensor, tile, device) for tensor, tile in kernel.loads)
    bare = Kernel(name, BlockGraph(grid, loop, iterators, kernel.steps, ()))
    tiles = block_tensors(bare, device).dims
    savers = tuple(
        _saver(kernel, tile, output, tiles[tile], grid, order) for tile, output in kernel.stores
    )
    return Kernel(name, BlockGraph(grid, loop, iterators, kernel.steps, savers))


def _iterator(
    kernel: FoundKernel, tensor: str, tile: str, device: Mapping[str, Dims]
) -> InputIterator:
    mine = variables(device[tensor])
    imap = tuple(variable if variable in mine else "" for variable in kernel.grid)
    return InputIterator(tensor, tile, imap, kernel.loop if kernel.loop in mine else "")


def _saver(
    kernel: FoundKernel,
    tile: str,
    output: str,
    dims: Dims,
    grid: Sequence[int],
    order: Sequence[str],
) -> Saver:
    mine = variables(dims)
    omap = tuple(v if v in mine else part_of(v) for v in kernel.grid)
    bare = Saver(tile, output, (), omap)
    sizes = saved_dims(bare, dims, grid)
    parts = [v for v in sizes if v not in order]
    ordered = [*parts, *(v for v in order if v in sizes)]
    dims = tuple(Dim(v, sizes[v]) for v in ordered)
    return Saver(tile, output, dims, omap, is_wide=output in kernel.wide)


#: A choice among few e-nodes, made hundreds of times: a proof that it is best takes eight times as long.
_OPTIONS = ExtractionOptions(extractor="greedy-dag", time_limit_s=5.0)

#: By their numbers in the table of terms.
_STAGES = (BlockStage.LOOP.value, BlockStage.AFTER.value, BlockStage.INVARIANT.value)

#: Operations of an element. A concatenation lies in shared memory whole, and seldom fits: it is for results
#: that cannot be computed iteration by iteration.
_FACTORS = {"matmul": 2.0, "accumulate concat": 1000.0}


def cheapest_kernel(
    search: BlockSearch,
    config: int,
    terms: Sequence[int],
    outputs: Sequence[str],
    sizes: Mapping[str, int],
    level: int = 1,
) -> FoundKernel:
    """Return the kernel that computes terms of a configuration in the fewest operations.

    Args:
        search: the terms.
        config: the number of the configuration.
        terms: the tensors that it stores.
        outputs: the names of the results.
        sizes: real sizes of the index variables; the count of operations is for these.
        level: of the kernel, for its rows.
    """
    _, configuration = search.configurations[config]
    derivations = search.derivations(config)
    steps, chosen = _choose(
        search, derivations, terms, _DerivationCosts(search, configuration, sizes)
    )
    names: dict[int, str] = {}
    loads: list[tuple[str, str]] = []
    for term in steps:
        operand = search.loaded(term)
        names[term] = f"{operand.name}_" if operand else f"t{len(names) + 1 - len(loads)}"
        if operand:
            loads.append((operand.name, names[term]))
    made: list[BlockStep] = [
        step_of(chosen[term], names, names[term]) for term in steps if term in chosen
    ]
    loop = configuration.loop.name if configuration.loop else ""
    grid = tuple(variable.name for variable in configuration.grid)
    stores = tuple((names[term], output) for term, output in zip(terms, outputs, strict=True))
    rows = tuple(
        _row(
            search,
            term,
            names[term],
            chosen.get(term),
            (level, config, len(derivations.get(term, ()))),
        )
        for term in steps
    )
    return FoundKernel(tuple(sorted(loads)), grid, loop, tuple(made), stores, rows=rows)


def _row(
    search: BlockSearch,
    term: int,
    tensor: str,
    chosen: TermDerivation | None,
    where: tuple[int, int, int],
) -> FoundRow:
    """Return the row of a term; of where it is: level, configuration, number of derivations."""
    (level, config, count), (operators, stage, klass, value) = where, search.term_row(term)
    made = chosen or TermDerivation("load", "", "", 0, 0)
    return FoundRow(
        "", tensor, level, config, term, operators, _STAGES[stage], made.op, made.name,
        made.variable, made.a, made.b, klass, value, count,
    )  # fmt: skip


class _DerivationCosts:
    """Operations of derivations, per block and in all iterations."""

    def __init__(
        self, search: BlockSearch, configuration: BlockConfiguration, sizes: Mapping[str, int]
    ) -> None:
        self._search = search
        self._configuration = configuration
        splits = {v.name: v.factor for v in (*configuration.grid,)}
        loop = configuration.loop
        self._tiles = {name: size / splits.get(name, 1) for name, size in sizes.items()}
        if loop:
            self._tiles[loop.name] /= loop.factor

    def of(self, term: int, derivation: TermDerivation) -> float:
        labels = {*self._search.value(derivation.a).labels}
        if derivation.b:
            labels |= {*self._search.value(derivation.b).labels}
        iterations = self._configuration.iterations if LOOP in labels else 1
        elements = math.prod(self._tiles.get(label, 1.0) for label in labels)
        return elements * iterations * _FACTORS.get(derivation.op, 1.0)


def _choose(
    search: BlockSearch,
    derivations: Mapping[int, list[TermDerivation]],
    terms: Sequence[int],
    costs: _DerivationCosts,
) -> tuple[list[int], dict[int, TermDerivation]]:
    """Return the terms that are needed, operands first, and how each is derived."""
    needed = _needed(derivations, terms)
    number = {term: place for place, term in enumerate(needed)}
    nodes: list[tuple[int, float, list[int], TermDerivation | None]] = []
    for term in needed:
        if search.loaded(term) is not None:  # nothing is computed that is loaded
            nodes.append((number[term], 0.0, [], None))
            continue
        for derivation in derivations[term]:
            children = {number[child] for child in (derivation.a, derivation.b) if child}
            nodes.append((number[term], costs.of(term, derivation), sorted(children), derivation))
    root = len(needed)
    nodes.append((root, 0.0, sorted({number[term] for term in terms}), None))
    problem = ExtractionProblem(
        cost_us=np.array([cost for _, cost, _, _ in nodes]),
        node_class=np.array([klass for klass, _, _, _ in nodes], np.int32),
        child_ptr=np.cumsum([0, *(len(children) for _, _, children, _ in nodes)]).astype(np.int32),
        child_idx=np.array([c for _, _, children, _ in nodes for c in children], np.int32),
        n_classes=root + 1,
        root=root,
        original=np.full(root + 1, UNUSED, np.int32),
    )
    choice = extract(problem, _OPTIONS).choice
    order = [klass for klass in topological_order(problem, choice) if klass != root]
    chosen = {needed[klass]: nodes[int(choice[klass])][3] for klass in order}
    return [needed[klass] for klass in order], {t: d for t, d in chosen.items() if d is not None}


def _needed(derivations: Mapping[int, list[TermDerivation]], terms: Sequence[int]) -> list[int]:
    found = dict.fromkeys(terms)
    waiting = list(terms)
    while waiting:
        for derivation in derivations.get(waiting.pop(), ()):
            for child in (derivation.a, derivation.b):
                if child and child not in found:
                    found[child] = None
                    waiting.append(child)
    return list(found)


#: Ways to some tensors: each has, for each kernel before, its possible forms.
Ways: TypeAlias = tuple[tuple[tuple[FoundKernel, ...], ...], ...]


class SearchBound(Protocol):
    """Knows what was found so far, and what kernels take at least.

    All times are of the program's own sizes. The search leaves out stored tensors if ``is_over`` is true of
    a lower bound on every μGraph that goes on from there. The bound counts the kernels so far, and one
    more, which loads their tensors and stores the program's outputs. That holds of
    several more, too: the first of them loads all that, the last one stores the outputs, and a kernel takes
    a launch, its loads and its stores, each once, at least. (Where a program has several
    outputs, a kernel need not load all that is stored for it: then loads do not count.)
    """

    def note(self, route: Route) -> None:
        """Take note of what was found."""

    def least_kernel_us(self, tensors: Iterable[Operand]) -> float:
        """Return what no kernel takes less than that loads or stores some tensors, and perhaps others."""

    def least_before_us(self, ways: Ways) -> float:
        """Return what the cheapest of some ways takes; infinite where none fits a device."""

    def is_over(self, least_us: float) -> bool:
        """Whether something that takes no less costs more than what was found; never where nothing was."""


class NoBound:
    """Leaves out nothing."""

    def note(self, route: Route) -> None:
        """Forget it."""

    def least_kernel_us(self, tensors: Iterable[Operand]) -> float:
        """Return that nothing is known."""
        return 0.0

    def least_before_us(self, ways: Ways) -> float:
        """Return that nothing is known."""
        return 0.0

    def is_over(self, least_us: float) -> bool:
        """Return that nothing is."""
        return False
