"""Chains of a model: what a value is computed of by functions and reductions that nothing else uses.

Several of them are one with as many values where one reads the other's, or all read the same. A chain is a
program, and one kernel does it row by row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.dims import Dim, Dims, count, variables
from relational_tensat.mugraph.graph.mu_operator import names
from relational_tensat.mugraph.graph.mugraph import (
    BlockGraph,
    InputIterator,
    Kernel,
    MuGraph,
    Operation,
    Saver,
)
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.regions.groups import groups
from relational_tensat.tensor import Graph, Node, TensorType
from relational_tensat.tensor.types import AttrValue

_FUNCTIONS = ("abs", "erf", "exp", "gelu", "neg", "reciprocal", "relu", "sigmoid", "sqrt", "tanh")
_BINARY = ("add", "div", "mul", "sub")
_REDUCTIONS = ("reduce_max", "reduce_mean", "reduce_sum")
#: What chains are made of.
OPERATORS = frozenset({*_FUNCTIONS, *_BINARY, "pow", *_REDUCTIONS, "layer_norm"})
#: Of a chain, and of a kernel.
MOST_INPUTS = 9


@dataclass(frozen=True, slots=True)
class Chain:
    """Nodes that compute one value, or several.

    Attributes:
        nodes: in topological order.
        inputs: what they read of others, in order.
        outputs: the values, in the order of the nodes.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def chains(graph: Graph) -> list[Chain]:
    """Return the largest chains of at least two operators and few inputs, then groups of these.

    Of those with one value each node is in one. A single operator may be one of a group.
    """
    alone = _chains(graph)
    together = (
        _chain(group.nodes, group.outputs, graph)
        for group in groups(graph, [chain.nodes for chain in alone])
    )
    return [
        chain
        for chain in (*alone, *together)
        if len(chain.nodes) > 1 and len(chain.inputs) <= MOST_INPUTS
    ]


def _chains(graph: Graph) -> list[Chain]:
    """Return the largest chains with one value, those of one operator too."""
    makers = {name: node for node in graph.nodes for name in node.outputs}
    users: dict[str, list[Node]] = {}
    for node in graph.nodes:
        for name in node.inputs:
            users.setdefault(name, []).append(node)
    taken: set[str] = set()
    found = []
    for node in reversed(graph.nodes):
        if node.outputs[0] in taken or not _is_fit(node, graph):
            continue
        chain = _cone(node, graph, makers, users)
        taken.update(member.outputs[0] for member in chain.nodes)
        found.append(chain)
    return found[::-1]


def exponent_of(node: Node, graph: Graph) -> float | None:
    """Return a power's exponent, if it is one number; None where it is a tensor."""
    weight = graph.weights.get(node.inputs[1])
    if weight is None or weight.data is None or weight.type.size != 1:
        return None
    return float(np.asarray(weight.data).item())


def _cone(
    last: Node, graph: Graph, makers: Mapping[str, Node], users: Mapping[str, list[Node]]
) -> Chain:
    """Return a node and what is computed for it only."""
    members = {last.outputs[0]: last}
    pending = [last]
    while pending:
        for name in _operands(pending.pop(), graph):
            node = makers.get(name)
            if node is None or name in members or not _is_fit(node, graph) or name in graph.outputs:
                continue
            if all(user.outputs[0] in members for user in users[name]):
                members[name] = node
                pending.append(node)
        if not pending:  # a value of several users may be theirs only now
            pending = [
                node
                for node in members.values()
                if any(
                    name not in members
                    and name in makers
                    and name not in graph.outputs
                    and _is_fit(makers[name], graph)
                    and all(user.outputs[0] in members for user in users[name])
                    for name in _operands(node, graph)
                )
            ]
    nodes = tuple(node for node in graph.nodes if node.outputs[0] in members)
    return _chain(nodes, last.outputs, graph)


def _chain(nodes: tuple[Node, ...], outputs: tuple[str, ...], graph: Graph) -> Chain:
    members = {node.outputs[0] for node in nodes}
    read = (name for node in nodes for name in _operands(node, graph) if name not in members)
    return Chain(nodes, tuple(dict.fromkeys(read)), outputs)


def _operands(node: Node, graph: Graph) -> tuple[str, ...]:
    """Return what a node reads; an exponent that is a number is no tensor of it."""
    is_number = node.op == "pow" and exponent_of(node, graph) is not None
    return node.inputs[:1] if is_number else node.inputs


def _is_fit(node: Node, graph: Graph) -> bool:
    if node.op not in OPERATORS or len(node.outputs) != 1:
        return False
    if node.attrs.get("approximate", "none") != "none" or not node.attrs.get("keepdims", True):
        return False
    kinds = [graph.types[name] for name in (*node.inputs, *node.outputs)]
    return all(isinstance(kind, TensorType) and kind.dtype == "float32" for kind in kinds)


#: The most axes of a grid.
_AXES = 3


def program_of(chain: Chain, graph: Graph) -> MuGraph:
    """Return what a chain computes; a variable is named for its axis, counted from the last one.

    Raises:
        InputError: a layer is normalized over several axes, or an axis has two sizes.
    """
    inputs = {name: dims_of_value(graph, name) for name in chain.inputs}
    sizes: dict[str, int] = {}
    for dim in (dim for dims in inputs.values() for dim in dims):
        if sizes.setdefault(dim.variable, dim.size) != dim.size:
            raise InputError(f"{chain.outputs[-1]}: an axis of two sizes")
    builder = _ChainBuilder(graph)
    for node in chain.nodes:
        builder.add(node)
    return MuGraph(chain.outputs[-1], inputs, tuple(builder.steps), chain.outputs)


def row_kernel(program: MuGraph, *, is_for_one: bool = False) -> MuGraph:
    """Return a program as one kernel, a block a row: what all results have and nothing is summed over.

    Args:
        is_for_one: whether one block may do it all: a processor's core does, of a GPU most would be idle.

    Raises:
        InputError: there is no such variable.
    """
    dims = kernel_tensors(program)
    results = [dims[output] for output in program.outputs]
    steps = [cast(Operation, step) for step in program.steps]
    summed = {name for step in steps if "over" in step.attrs for name in names(step.attrs, "over")}
    free = [dim for dim in results[0] if dim.variable not in summed]
    free = [dim for dim in free if all(dim in result for result in results)]
    rows = free if summed else free[:-1]
    if not rows and not is_for_one:
        raise InputError(f"{program.name}: a kernel of one block")
    grid = rows[-_AXES:]
    iterators = tuple(
        InputIterator(
            name, f"{name}_tile", _maps(grid, kind), is_condition=name in program.conditions
        )
        for name, kind in program.inputs.items()
    )
    renamed = {iterator.tensor: iterator.output for iterator in iterators}
    inner = tuple(
        Operation(
            step.op,
            tuple(renamed.get(name, name) for name in step.operands),
            f"{step.output}_tile",
            step.attrs,
        )
        for step in steps
        if renamed.setdefault(step.output, f"{step.output}_tile")
    )
    savers = tuple(
        Saver(renamed[output], output, result, _maps(grid, result))
        for output, result in zip(program.outputs, results, strict=True)
    )
    block = BlockGraph(tuple(dim.size for dim in grid), 1, iterators, inner, savers)
    return replace(program, steps=(Kernel("rows", block),))


class _ChainBuilder:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.steps: list[Operation] = []

    def add(self, node: Node) -> None:
        (output,), operands = node.outputs, node.inputs
        match node.op:
            case "pow":
                self._power(node, output)
            case "reduce_max" | "reduce_sum" | "reduce_mean":
                self._reduced(node, output)
            case "layer_norm":
                self._layer_norm(node, output)
            case op:
                self._step(op, operands, output)

    def _step(self, op: str, operands: Sequence[str], output: str, **attrs: AttrValue) -> str:
        self.steps.append(Operation(op, tuple(operands), output, attrs))
        return output

    def _power(self, node: Node, output: str) -> None:
        exponent = exponent_of(node, self._graph)
        if exponent is None:
            self._step("pow", node.inputs, output)
        elif exponent == 2.0:
            self._step("square", node.inputs[:1], output)
        else:
            self._step("power", node.inputs[:1], output, value=exponent)

    def _reduced(self, node: Node, output: str) -> None:
        x = node.inputs[0]
        shape = _shape(self._graph, x)
        axes = cast(tuple[int, ...], node.attrs["axes"]) or tuple(range(len(shape)))
        over = [_variable(shape, axis) for axis in axes if shape[axis] > 1]
        size = count(tuple(dim for dim in dims_of_value(self._graph, x) if dim.variable in over))
        if node.op == "reduce_mean":
            total = self._step("sum", [x], f"{output}_sum", over=tuple(over))
            self._step("scale", [total], output, value=1.0 / size)
        else:
            op = "sum" if node.op == "reduce_sum" else node.op
            self._step(op, [x], output, over=tuple(over))

    def _layer_norm(self, node: Node, output: str) -> None:
        x, gain, *bias = node.inputs
        shape = _shape(self._graph, x)
        if cast(int, node.attrs["axis"]) != len(shape) - 1:
            raise InputError(f"{output}: a layer is normalized over several axes")
        over = (_variable(shape, len(shape) - 1),)
        total = self._step("sum", [x], f"{output}_sum", over=over)
        mean = self._step("scale", [total], f"{output}_mean", value=1.0 / shape[-1])
        centred = self._step("sub", [x, mean], f"{output}_centred")
        epsilon = cast(float, node.attrs["epsilon"])
        size = self._step("rms", [centred], f"{output}_rms", over=over, epsilon=epsilon)
        unit = self._step("div", [centred, size], f"{output}_unit")
        scaled = self._step("mul", [unit, gain], f"{output}_scaled" if bias else output)
        if bias:
            self._step("add", [scaled, *bias], output)


def _maps(grid: Sequence[Dim], kind: Dims) -> tuple[str, ...]:
    return tuple(dim.variable if dim.variable in variables(kind) else "" for dim in grid)


def _shape(graph: Graph, name: str) -> tuple[int, ...]:
    return cast(TensorType, graph.types[name]).shape


def _variable(shape: tuple[int, ...], axis: int) -> str:
    return f"a{len(shape) - 1 - axis}"


def dims_of_value(graph: Graph, name: str) -> Dims:
    """Return the dims of a value; those of one element need no variable."""
    shape = _shape(graph, name)
    return tuple(Dim(_variable(shape, axis), size) for axis, size in enumerate(shape) if size > 1)
