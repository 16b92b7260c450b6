"""A chain as a program, and the kernel that does it row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.fusion.chains import Chain, exponent_of
from relational_tensat.mugraph.graph.described import names
from relational_tensat.mugraph.graph.dims import Dim, Dims, count, variables
from relational_tensat.mugraph.graph.mugraph import (
    BlockGraph,
    Iterator,
    Kernel,
    MuGraph,
    Operation,
    Saver,
)
from relational_tensat.mugraph.graph.well_formed import kernel_tensors
from relational_tensat.tensor import Graph, Node, TensorType
from relational_tensat.tensor.types import AttrValue

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
    builder = _Builder(graph)
    for node in chain.nodes:
        builder.add(node)
    return MuGraph(chain.outputs[-1], inputs, tuple(builder.steps), chain.outputs)


def row_kernel(program: MuGraph) -> MuGraph:
    """Return a program as one kernel, a block a row: what all results have and nothing is summed over.

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
    if not rows:
        raise InputError(f"{program.name}: a kernel of one block")
    grid = rows[-_AXES:]
    iterators = tuple(
        Iterator(name, f"{name}_tile", _maps(grid, kind), is_condition=name in program.conditions)
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


class _Builder:
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
