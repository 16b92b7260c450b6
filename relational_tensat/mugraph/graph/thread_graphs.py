"""Thread graphs by rule (section 4.2 of the paper): chains of operators in registers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from relational_tensat.mugraph.graph.dims import Dims
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
from relational_tensat.mugraph.graph.operators import (
    Elementwise,
    Function,
    Power,
    Scale,
    Shift,
    mu_operator,
)
from relational_tensat.mugraph.graph.well_formed import BlockTensors, block_tensors, kernel_tensors


def with_thread_graphs(graph: MuGraph) -> MuGraph:
    """Return a μGraph whose chains of operators are thread graphs; it computes the same.

    A chain begins with a product or an operator of one element, and goes on with the only step that reads
    the last one's result, if that is an operator of one element of the same stage.

    Raises:
        InputError: the graph is not well-formed.
    """
    device = kernel_tensors(graph)
    return replace(graph, steps=tuple(_threaded(step, device) for step in graph.steps))


def flat_steps(
    steps: Sequence[BlockStep],
) -> tuple[Operation | Accumulate | RunningMax, ...]:
    """Return the steps of a block, those of thread graphs in their place."""
    return tuple(
        inner
        for step in steps
        for inner in (step.steps if isinstance(step, ThreadGraph) else (step,))
    )


def _threaded(step: KernelStep, device: Mapping[str, Dims]) -> KernelStep:
    if not isinstance(step, Kernel):
        return step
    chains = _chains(step.block, block_tensors(step, device))
    ends = {chain[-1].output: chain for chain in chains if len(chain) > 1}
    inner = {operation.output for chain in ends.values() for operation in chain[:-1]}
    steps: list[BlockStep] = []
    for one in step.block.steps:
        if isinstance(one, Operation) and one.output in ends:
            steps.append(ThreadGraph(tuple(ends[one.output]), (one.output,)))
        elif not (isinstance(one, Operation) and one.output in inner):
            steps.append(one)
    return replace(step, block=replace(step.block, steps=tuple(steps)))


def _chains(block: BlockGraph, tensors: BlockTensors) -> list[list[Operation]]:
    reads = Counter(name for step in block.steps for name in step.operands)
    reads.update(saver.tile for saver in block.savers)
    chains: dict[str, list[Operation]] = {}
    for step in block.steps:
        if not isinstance(step, Operation):
            continue
        before = [
            name
            for name in step.operands
            if name in chains
            and reads[name] == 1
            and tensors.stages[name] is tensors.stages[step.output]
            and set(tensors.dims[name]) == set(tensors.dims[step.output])
        ]
        if before and _is_elementwise(step):
            chains[step.output] = [*chains.pop(before[0]), step]
        elif _is_elementwise(step) or step.op == "matmul":
            chains[step.output] = [step]
    return list(chains.values())


def _is_elementwise(step: Operation) -> bool:
    return isinstance(mu_operator(step.op), (Function, Elementwise, Power, Scale, Shift))
