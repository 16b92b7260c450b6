"""The same μGraph written otherwise, with the same kernels or for a reader that needs less.

``with_thread_graphs`` puts chains of operators in registers, by rule (section 4.2 of the paper).
``expanded`` replaces an operator of somebody's own by its parts. ``core`` is a program without its
windows, which are inputs of their own, so a search has nothing to do with them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from relational_tensat.mugraph.graph.dims import Dims, Window
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockGraph,
    BlockStep,
    InputIterator,
    Kernel,
    KernelStep,
    MuGraph,
    Operation,
    RunningMax,
    ThreadGraph,
)
from relational_tensat.mugraph.graph.operators import (
    MuElementwise,
    MuFunction,
    Power,
    Scale,
    Shift,
    mu_operator,
)
from relational_tensat.mugraph.graph.validity import BlockTensors, block_tensors, kernel_tensors


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
    chains, dims = _window_chains(program), kernel_tensors(program)
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
    chains = _window_chains(program)

    def loaded(iterator: InputIterator) -> InputIterator:
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
    """Return a μGraph of a program as one of its core; None where it loads what is not among its inputs.

    Args:
        graph: with inputs in the order of the program's, of the same index variables.
        program: the program that it shall compute.
    """
    if list(graph.inputs.values()) != list(program.inputs.values()):
        return None
    bases = dict(zip(graph.inputs, program.inputs, strict=True))
    named = {chain: name for name, chain in _window_chains(program).items()}
    own, alone = _window_chains(graph), core(program)
    inputs = alone.inputs

    def called(base: str, windows: tuple[Window, ...]) -> str:
        """Return the core's name of a tensor in device memory; empty for a window that it has not."""
        base, before = own.get(base, (base, ()))
        if base not in bases:
            return "" if windows else base
        name = named.get((bases[base], before + windows), "")
        return name if before + windows else bases[base]

    unknown: list[str] = []

    def loaded(iterator: InputIterator) -> InputIterator:
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


def _window_chains(graph: MuGraph) -> Mapping[str, Chain]:
    """Return what the windows among a graph's steps are taken of."""
    chains: dict[str, Chain] = {}
    for step in graph.steps:
        if isinstance(step, Operation) and step.op == "window":
            base, before = chains.get(step.operands[0], (step.operands[0], ()))
            chains[step.output] = base, (*before, Window.of(step.attrs))
    return chains


def _with_loads(kernel: Kernel, loaded: Callable[[InputIterator], InputIterator]) -> Kernel:
    iterators = tuple(map(loaded, kernel.block.iterators))
    return replace(kernel, block=replace(kernel.block, iterators=iterators))


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
    return isinstance(mu_operator(step.op), (MuFunction, MuElementwise, Power, Scale, Shift))
