"""μGraphs as Mirage's operators need them: no thread graphs, one variable a sum, accumulators to store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from relational_tensat.mugraph.graph.described import names
from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockStep,
    Kernel,
    KernelStep,
    MuGraph,
    Operation,
    RunningMax,
)
from relational_tensat.mugraph.graph.thread_graphs import flat_steps
from relational_tensat.mugraph.graph.well_formed import Stage, block_tensors, kernel_tensors


def plain(graph: MuGraph) -> MuGraph:
    """Return a μGraph that computes the same, nearer to Mirage's operators.

    It has no thread graphs; each sum and each maximum is over one variable; what the loop does not change
    is accumulated before a store, or a step after the loop, reads it; and maxima of it are running ones.

    Raises:
        InputError: the graph is not well-formed.
    """
    device = kernel_tensors(graph)
    steps = (one for step in graph.steps for one in _plain_steps(step, device))
    return replace(graph, steps=tuple(steps))


def _plain_steps(step: KernelStep, device: Mapping[str, Dims]) -> Iterator[KernelStep]:
    if isinstance(step, Operation):
        yield from _over_single_variables(step)
        return
    steps: list[BlockStep] = []
    for inner in flat_steps(step.block.steps):
        if isinstance(inner, Operation):
            steps += _over_single_variables(inner)
        else:
            steps += _single_maxima(inner) if isinstance(inner, RunningMax) else [inner]
    yield _accumulated(replace(step, block=replace(step.block, steps=tuple(steps))), device)


def _over_single_variables(step: Operation) -> Iterator[Operation]:
    over = names(step.attrs, "over") if step.op in ("sum", "max") else ()
    operands = step.operands
    for place, variable in enumerate(over[:-1]):
        part = f"{step.output} part {place}"
        yield Operation(step.op, operands, part, {"over": (variable,)})
        operands = (part,)
    yield replace(step, operands=operands, attrs={"over": over[-1:]}) if over else step


def _single_maxima(step: RunningMax) -> Iterator[RunningMax]:
    """Yield running maxima of running maxima: they are those of all elements so far, too."""
    operand = step.operand
    for place, variable in enumerate(step.over[:-1]):
        part = f"{step.output} part {place}"
        yield RunningMax(operand, part, (variable,))
        operand = part
    yield replace(step, operand=operand, over=step.over[-1:])


def _accumulated(kernel: Kernel, device: Mapping[str, Dims]) -> Kernel:
    """Return a kernel that accumulates what is read after the loop and the loop does not change.

    The sum of one iteration is what was added, the largest of equal elements each of them.
    """
    block, stages = kernel.block, block_tensors(kernel, device).stages
    kind = "sum" if block.loop == 1 else "max"
    kept: dict[str, str] = {}
    steps: list[BlockStep] = []

    def after(name: str) -> str:
        if stages[name] is not Stage.INVARIANT:
            return name
        if name not in kept:
            kept[name] = f"{name} kept"
            steps.append(Accumulate(name, kept[name], kind))
        return kept[name]

    for step in block.steps:
        if not isinstance(step, Operation):
            steps.append(step)
        elif stages[step.output] is Stage.AFTER:
            operands = tuple(map(after, step.operands))
            steps.append(replace(step, operands=operands))
        elif step.op == "max" and stages[step.output] is Stage.INVARIANT:
            steps.append(RunningMax(step.operands[0], step.output, names(step.attrs, "over")))
        else:
            steps.append(step)
    savers = tuple(replace(saver, tile=after(saver.tile)) for saver in block.savers)
    return replace(kernel, block=replace(block, steps=tuple(steps), savers=savers))
