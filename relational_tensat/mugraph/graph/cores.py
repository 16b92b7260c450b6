"""Programs without their windows: these are inputs of their own, so a search has nothing to do with them.

A μGraph that computes the core for whatever inputs, and loads the windows that the program has, computes
the program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from relational_tensat.mugraph.graph.input_windows import Window
from relational_tensat.mugraph.graph.mugraph import (
    Iterator,
    Kernel,
    KernelStep,
    MuGraph,
    Operation,
)
from relational_tensat.mugraph.graph.well_formed import kernel_tensors

#: An input, and the windows of it that are taken, each of the one before.
Chain = tuple[str, tuple[Window, ...]]


def has_windows(graph: MuGraph) -> bool:
    """Whether a program, or a μGraph, loads parts of inputs."""
    loads = (iterator for kernel in graph.kernels for iterator in kernel.block.iterators)
    is_program = any(isinstance(step, Operation) and step.op == "window" for step in graph.steps)
    return is_program or any(iterator.windows for iterator in loads)


def core(program: MuGraph) -> MuGraph:
    """Return a program whose inputs are the windows, and the inputs that are read whole.

    Raises:
        InputError: the program is not well-formed.
    """
    if not has_windows(program):
        return program
    chains, dims = _chains(program), kernel_tensors(program)
    steps = tuple(step for step in program.steps if step.outputs[0] not in chains)
    read = {name for step in steps for name in step.operands} | set(program.outputs)
    inputs = {name: dims[name] for name in (*program.inputs, *chains) if name in read}
    bases = {name: chains[name][0] if name in chains else name for name in inputs}
    conditions = frozenset(name for name, base in bases.items() if base in program.conditions)
    return replace(program, inputs=inputs, steps=steps, conditions=conditions)


def with_windows(graph: MuGraph, program: MuGraph) -> MuGraph:
    """Return a μGraph of a program's core as one of the program: its loads have the windows.

    Raises:
        InputError: one of them is not well-formed.
    """
    if not has_windows(program):
        return graph
    chains = _chains(program)

    def loaded(iterator: Iterator) -> Iterator:
        base, windows = chains.get(iterator.tensor, (iterator.tensor, ()))
        return replace(iterator, tensor=base, windows=windows + iterator.windows)

    steps = tuple(
        _with_loads(step, loaded) if isinstance(step, Kernel) else step for step in graph.steps
    )
    read = {name for step in steps if isinstance(step, Operation) for name in step.operands}
    before = tuple(step for step in program.steps if step.outputs[0] in chains) if read else ()
    whole = replace(
        graph, inputs=program.inputs, steps=(*before, *steps), conditions=program.conditions
    )
    kernel_tensors(whole)
    return whole


def core_like(graph: MuGraph, program: MuGraph) -> MuGraph | None:
    """Return a μGraph of a program as one of its core; None where it loads what is none of its inputs.

    Args:
        graph: with inputs in the order of the program's, of the same index variables.
        program: what it shall compute.
    """
    if list(graph.inputs.values()) != list(program.inputs.values()):
        return None
    bases = dict(zip(graph.inputs, program.inputs, strict=True))
    named = {chain: name for name, chain in _chains(program).items()}
    own, alone = _chains(graph), core(program)
    inputs = alone.inputs

    def called(base: str, windows: tuple[Window, ...]) -> str:
        """Return the core's name of a tensor in device memory; empty for a window that it has not."""
        base, before = own.get(base, (base, ()))
        if base not in bases:
            return "" if windows else base
        name = named.get((bases[base], before + windows), "")
        return name if before + windows else bases[base]

    unknown: list[str] = []

    def loaded(iterator: Iterator) -> Iterator:
        name = called(iterator.tensor, iterator.windows)
        if not name or (iterator.tensor in bases and name not in inputs):
            unknown.append(iterator.output)
        return replace(iterator, tensor=name, windows=())

    steps: list[KernelStep] = []
    for step in graph.steps:
        if isinstance(step, Kernel):
            steps.append(_with_loads(step, loaded))
        elif step.output not in own:
            operands = tuple(called(name, ()) for name in step.operands)
            unknown += [step.output] if "" in operands else []
            steps.append(replace(step, operands=operands))
    if unknown:
        return None
    return replace(graph, inputs=inputs, steps=tuple(steps), conditions=alone.conditions)


def _chains(graph: MuGraph) -> Mapping[str, Chain]:
    """Return what the windows among a graph's steps are taken of."""
    chains: dict[str, Chain] = {}
    for step in graph.steps:
        if isinstance(step, Operation) and step.op == "window":
            base, before = chains.get(step.operands[0], (step.operands[0], ()))
            chains[step.output] = base, (*before, Window.of(step.attrs))
    return chains


def _with_loads(kernel: Kernel, loaded: Callable[[Iterator], Iterator]) -> Kernel:
    iterators = tuple(map(loaded, kernel.block.iterators))
    return replace(kernel, block=replace(kernel.block, iterators=iterators))
