"""Operators of somebody's own as what they are made of, for searches and code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from relational_tensat.mugraph.graph.mugraph import (
    BlockStep,
    Kernel,
    KernelStep,
    MuGraph,
    Operation,
    ThreadGraph,
)
from relational_tensat.mugraph.graph.operators import mu_operator


def expanded(graph: MuGraph) -> MuGraph:
    """Return a μGraph whose operators with parts are these; itself where it has none."""
    steps: list[KernelStep] = []
    for step in graph.steps:
        if isinstance(step, Operation):
            steps += _parts(step)
        else:
            block = replace(step.block, steps=_block_steps(step.block.steps))
            steps.append(Kernel(step.name, block))
    return graph if tuple(steps) == graph.steps else replace(graph, steps=tuple(steps))


def _block_steps(steps: Sequence[BlockStep]) -> tuple[BlockStep, ...]:
    made: list[BlockStep] = []
    for step in steps:
        if isinstance(step, Operation):
            made += _parts(step)
        elif isinstance(step, ThreadGraph):
            made.append(replace(step, steps=tuple(p for one in step.steps for p in _parts(one))))
        else:
            made.append(step)
    return tuple(made)


def _parts(step: Operation) -> Iterator[Operation]:
    """Yield what an operation is made of, parts of parts included; itself where it has none."""
    parts = mu_operator(step.op).parts(step)
    if not parts:
        yield step
    for part in parts:
        yield from _parts(part)
