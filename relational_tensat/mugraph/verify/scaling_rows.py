"""Exponentials of a μGraph, and whether their rows may be scaled without a change of the result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from relational_tensat.mugraph.graph.described import names
from relational_tensat.mugraph.graph.dims import Dims, variables
from relational_tensat.mugraph.graph.mugraph import (
    BlockStep,
    Kernel,
    KernelStep,
    MuGraph,
    Operation,
)
from relational_tensat.mugraph.graph.mugraph import Iterator as TileIterator
from relational_tensat.mugraph.graph.thread_graphs import flat_steps
from relational_tensat.mugraph.graph.well_formed import block_tensors, kernel_tensors
from relational_tensat.mugraph.verify.random_tests import Difference, first_difference
from relational_tensat.mugraph.verify.shrinking_sizes import shrunk

_SCALE_INPUT = "@scale"


def has_exponentials(graph: MuGraph) -> bool:
    """Whether a graph computes an exponential anywhere."""
    return any(step.op == "exp" for step in _operations(graph))


def free_of_exponentials(program: MuGraph) -> tuple[str, ...]:
    """Return the inputs of a program that no exponential depends on."""
    sources = {name: {name} for name in program.inputs}
    used: set[str] = set()
    for step in _operations(program):
        sources[step.output] = set().union(*(sources[name] for name in step.operands))
        if step.op == "exp":
            used |= sources[step.output]
    return tuple(name for name in program.inputs if name not in used)


def scaling_difference(graph: MuGraph, seed: int = 0) -> Difference | None:
    """Return where a result changes when the rows of exponentials are scaled at random; None if nowhere.

    A row has the index variables of the results, but for those that something is summed over.
    """
    rows, small = rows_of(graph), shrunk(graph, graph)
    graph = graph if small is None else small[1]
    scale = tuple(dim for dim in _dims_of_rows(graph, rows))
    inputs = {**graph.inputs, _SCALE_INPUT: scale}
    same = replace(graph, inputs=inputs)
    return first_difference(same, _scaled(same, rows), seed)


def rows_of(graph: MuGraph) -> frozenset[str]:
    """Return the index variables of the results that nothing is summed over."""
    dims = kernel_tensors(graph)
    found = {name for output in graph.outputs for name in variables(dims[output])}
    for operation in _operations(graph):
        if operation.op in ("sum", "matmul", "max", "reduce_max"):
            found.difference_update(names(operation.attrs, "over"))
    return frozenset(found)


def _dims_of_rows(graph: MuGraph, rows: frozenset[str]) -> Dims:
    """Return the dims that all exponentials' rows have, at their sizes in device memory."""
    sizes = {d.variable: d for dims in kernel_tensors(graph).values() for d in dims}
    common: set[str] = set(rows)
    for kernel_dims in _exponential_dims(graph):
        common &= set(variables(kernel_dims))
    return tuple(sizes[name] for name in sizes if name in common)


def _exponential_dims(graph: MuGraph) -> Iterator[Dims]:
    device = kernel_tensors(graph)
    for step in graph.steps:
        if isinstance(step, Operation):
            if step.op == "exp":
                yield device[step.output]
            continue
        flat = replace(step, block=replace(step.block, steps=flat_steps(step.block.steps)))
        tensors = block_tensors(flat, device)
        for inner in flat.block.steps:
            if isinstance(inner, Operation) and inner.op == "exp":
                yield tensors.dims[inner.output]


def _scaled(graph: MuGraph, rows: frozenset[str]) -> MuGraph:
    """Return a graph whose exponentials are multiplied by a further input."""
    steps: list[KernelStep] = []
    for step in graph.steps:
        if isinstance(step, Kernel):
            steps.append(_scaled_kernel(step, graph.inputs[_SCALE_INPUT]))
        elif step.op == "exp":
            raw = f"{step.output}_raw"
            steps += [
                replace(step, output=raw),
                Operation("mul", (raw, _SCALE_INPUT), step.output),
            ]
        else:
            steps.append(step)
    return replace(graph, steps=tuple(steps))


def _scaled_kernel(kernel: Kernel, scale: Dims) -> Kernel:
    block = kernel.block
    steps: list[BlockStep] = []
    for step in flat_steps(block.steps):
        if isinstance(step, Operation) and step.op == "exp":
            raw = f"{step.output}_raw"
            steps += [replace(step, output=raw), Operation("mul", (raw, "@factor"), step.output)]
        else:
            steps.append(step)
    if len(steps) == len(flat_steps(block.steps)):
        return kernel
    splits = [
        next((m[axis] for it in block.iterators if (m := it.imap)[axis]), "")
        for axis in range(len(block.grid))
    ]
    mine = variables(scale)
    imap = tuple(name if name in mine else "" for name in splits)
    loops = {it.fmap for it in block.iterators} & set(mine)
    iterator = TileIterator(_SCALE_INPUT, "@factor", imap, min(loops, default=""))
    return replace(
        kernel, block=replace(block, iterators=(*block.iterators, iterator), steps=tuple(steps))
    )


def _operations(graph: MuGraph) -> Iterator[Operation]:
    for step in graph.steps:
        inner = flat_steps(step.block.steps) if isinstance(step, Kernel) else [step]
        yield from (operation for operation in inner if isinstance(operation, Operation))
