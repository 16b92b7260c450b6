"""Names of tensors in device memory: programs that differ in nothing else have the same kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from relational_tensat.mugraph.graph.mugraph import Kernel, KernelStep, MuGraph


def named_by_place(graph: MuGraph) -> MuGraph:
    """Return a graph whose inputs are called in0, in1, …, and what its steps make t0, t1, …"""
    made = [name for step in graph.steps for name in step.outputs]
    inputs = {name: f"in{place}" for place, name in enumerate(graph.inputs)}
    return _renamed(graph, inputs | {name: f"t{place}" for place, name in enumerate(made)})


def with_inputs_called(graph: MuGraph, names: Sequence[str]) -> MuGraph:
    """Return a graph with other names of its inputs, in order, which nothing else has then."""
    called = dict(zip(graph.inputs, names, strict=True))
    taken = {*names, *graph.inputs, *(name for step in graph.steps for name in step.outputs)}
    for step in graph.steps:
        for name in step.outputs:
            if name in names:
                place = next(n for n in range(len(taken) + 1) if f"{name}_{n}" not in taken)
                called[name] = f"{name}_{place}"
                taken.add(called[name])
    return _renamed(graph, called)


def _renamed(graph: MuGraph, called: Mapping[str, str]) -> MuGraph:
    return replace(
        graph,
        inputs={called.get(name, name): dims for name, dims in graph.inputs.items()},
        steps=tuple(_renamed_step(step, called) for step in graph.steps),
        outputs=tuple(called.get(name, name) for name in graph.outputs),
        conditions=frozenset(called.get(name, name) for name in graph.conditions),
    )


def _renamed_step(step: KernelStep, called: Mapping[str, str]) -> KernelStep:
    if not isinstance(step, Kernel):
        operands = tuple(called.get(name, name) for name in step.operands)
        return replace(step, operands=operands, output=called.get(step.output, step.output))
    iterators = tuple(
        replace(it, tensor=called.get(it.tensor, it.tensor)) for it in step.block.iterators
    )
    savers = tuple(
        replace(saver, output=called.get(saver.output, saver.output)) for saver in step.block.savers
    )
    return replace(step, block=replace(step.block, iterators=iterators, savers=savers))
