"""A μGraph that names index variables as its program does, so that both can be tested at smaller sizes.

What is imported may give each tensor variables of its own, and rename them where an operator aligns two,
as Mirage's graphs do. Where no tensor has two that are renamed into each other, they are one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.mugraph.graph.dims import Dim, Dims, variables
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
from relational_tensat.mugraph.graph.tensor_names import with_inputs_called
from relational_tensat.mugraph.graph.well_formed import block_tensors, kernel_tensors
from relational_tensat.mugraph.verify.shrinking_sizes import RELABELLINGS
from relational_tensat.tensor.types import AttrValue

#: Relabellings that leave sizes no freedom.
_OTHERS = RELABELLINGS - {"rename"}
#: Attributes that name variables.
_NAMING = ("over", "variable", "variables", "into")


def with_variables_of(program: MuGraph, graph: MuGraph) -> MuGraph | None:
    """Return a μGraph with the inputs' index variables of its program, and no ``rename``.

    None where there is none: its inputs have other sizes, something else than ``rename`` relabels, or one
    tensor has two variables that would be one.
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
    """Writes graphs with other names of variables; what a ``rename`` makes is its operand.

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
