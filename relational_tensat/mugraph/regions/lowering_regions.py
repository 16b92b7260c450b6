"""From nodes of a model to a program on index variables.

Reshape, Transpose and Expand only relabel, so grouped queries need no repeated keys. A softmax becomes its
parts, the chain of a root mean square one operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from relational_tensat.base.errors import ShapeError
from relational_tensat.mugraph.graph.arithmetic import FUNCTIONS
from relational_tensat.mugraph.graph.dims import Dim, Dims, variables
from relational_tensat.mugraph.graph.mugraph import MuGraph, Operation
from relational_tensat.mugraph.graph.well_formed import kernel_tensors
from relational_tensat.mugraph.regions.relabelling import Atoms, IndexAtoms
from relational_tensat.tensor import Graph, Node, TensorType
from relational_tensat.tensor.types import AttrValue

_LETTERS = "hqdkemnfrbcgijlopstuvwxyz"


@dataclass(frozen=True, slots=True)
class _Value:
    """A tensor of the region: its name in the program, its dims by position; ``number`` if it is one."""

    name: str
    dims: tuple[Atoms, ...]
    number: float | None = None


@dataclass(frozen=True, slots=True)
class _Root:
    """A root of a mean square of ``x`` over the atoms ``over``, or a part on the way to it."""

    x: _Value
    over: Atoms
    stage: str
    epsilon: float = 0.0


@dataclass(frozen=True, slots=True)
class _Step:
    op: str
    operands: tuple[str, ...]
    output: str
    over: Atoms = ()
    attrs: tuple[tuple[str, AttrValue], ...] = ()


@dataclass(frozen=True, slots=True)
class LoweredRegion:
    """Nodes of a model as a program.

    Attributes:
        program: on index variables.
        inputs: the model's values that the program's inputs are, in order.
        orders: of each result, the variables in the order of the model's dims, those of one dim together.
    """

    program: MuGraph
    inputs: tuple[str, ...]
    orders: tuple[tuple[str, ...], ...]


def lowered(
    graph: Graph, nodes: Sequence[Node], name: str, outputs: Sequence[str] = ()
) -> LoweredRegion:
    """Return nodes of a model as a program.

    Args:
        graph: the model.
        nodes: in order.
        name: of the program.
        outputs: the values that it shall give; by default the last node's result.

    Raises:
        ShapeError: an operator, or what is done with dims, has no such form; says which.
    """
    outputs = outputs or nodes[-1].outputs
    if len(outputs) == 1:
        return _Lowering(graph, name).lower(nodes, outputs)
    try:  # results of one shape have the same variables, so that a grid can split them together
        return _Lowering(graph, name).lower(nodes, outputs, is_aligned=True)
    except ShapeError:
        return _Lowering(graph, name).lower(nodes, outputs)


class _Lowering:
    def __init__(self, graph: Graph, name: str) -> None:
        self._graph = graph
        self._name = name
        self._atoms = IndexAtoms()
        self._values: dict[str, _Value] = {}
        self._roots: dict[str, _Root] = {}
        self._inputs: dict[str, _Value] = {}
        self._steps: list[_Step] = []
        self._made: list[_Value] = []

    def lower(
        self, nodes: Sequence[Node], outputs: Sequence[str], *, is_aligned: bool = False
    ) -> LoweredRegion:
        for node in nodes:
            self._node(node)
        results = [self._value(name) for name in outputs]
        if is_aligned:
            self._align(results)
        return self._program(results)

    def _align(self, values: Sequence[_Value]) -> None:
        first, *others = values
        for other in others:
            for mine, its in zip(first.dims, other.dims, strict=False):
                if self._atoms.size(mine) == self._atoms.size(its):
                    self._atoms.identify(mine, its)

    # --- operands ---

    def _value(self, name: str) -> _Value:
        if name in self._roots and name not in self._values:
            self._values[name] = self._stage(self._roots[name])
        if name not in self._values:
            self._values[name] = self._input(name)
        return self._values[name]

    def _input(self, name: str) -> _Value:
        kind = self._graph.types[name]
        if not isinstance(kind, TensorType) or not kind.is_float:
            raise ShapeError(f"{name} is {kind}, expected a tensor of floats")
        weight = self._graph.weights.get(name)
        if weight is not None and weight.data is not None and kind.size == 1:
            return _Value("", tuple(() for _ in kind.shape), float(np.asarray(weight.data).item()))
        given = _Value(f"in{len(self._inputs)}", tuple(map(self._atoms.new, kind.shape)))
        self._inputs[name] = given
        return given

    def _emit(
        self,
        op: str,
        operands: Sequence[_Value],
        dims: Sequence[Atoms],
        over: Atoms = (),
        **attrs: AttrValue,
    ) -> _Value:
        for operand in operands:
            if operand.number is not None:
                raise ShapeError(f"{op} of a number")
        output = f"t{len(self._steps) + 1}"
        names = tuple(operand.name for operand in operands)
        self._steps.append(_Step(op, names, output, over, tuple(attrs.items())))
        self._made.append(_Value(output, tuple(dims)))
        return self._made[-1]

    # --- operators ---

    def _node(self, node: Node) -> None:
        if not node.inputs:
            raise ShapeError(f"{node.op} is no operator of μGraphs")
        root = self._next_root(node)
        if root is not None:
            self._roots[node.outputs[0]] = root
            return
        lower = _OPERATORS.get(node.op)
        if lower is None and node.op in FUNCTIONS:
            x = self._value(node.inputs[0])
            self._values[node.outputs[0]] = self._emit(node.op, [x], x.dims)
        elif lower is None:
            raise ShapeError(f"{node.op} is no operator of μGraphs")
        else:
            self._values[node.outputs[0]] = lower(self, node)

    def _next_root(self, node: Node) -> _Root | None:
        """Return the part of 1 / sqrt(mean(x²) + epsilon) that a node is; None for no part."""
        root = self._roots.get(node.inputs[0])
        match node.op, root.stage if root else "":
            case "pow", _ if self._value(node.inputs[1]).number == 2.0:
                return _Root(self._value(node.inputs[0]), (), "square")
            case "reduce_mean", "square" if root and node.attrs["keepdims"]:
                axes = cast(tuple[int, ...], node.attrs["axes"])
                over = tuple(atom for axis in axes for atom in root.x.dims[axis])
                return _Root(root.x, over, "mean")
            case "add", "mean" if root and not root.epsilon:
                epsilon = self._value(node.inputs[1]).number
                return _Root(root.x, root.over, "mean", epsilon) if epsilon else None
            case "sqrt", "mean" if root:
                return _Root(root.x, root.over, "root", root.epsilon)
            case "reciprocal", "root" if root:
                return _Root(root.x, root.over, "inverse", root.epsilon)
            case "div", "" if self._is_root(node.inputs[1], "root"):
                root = self._roots[node.inputs[1]]
                is_one = self._value(node.inputs[0]).number == 1.0
                return _Root(root.x, root.over, "inverse", root.epsilon) if is_one else None
        return None

    def _is_root(self, name: str, stage: str) -> bool:
        return name in self._roots and self._roots[name].stage == stage

    def _stage(self, root: _Root) -> _Value:
        """Return a part of a root mean square that is read as what it is."""
        if root.stage in ("square", "mean"):
            square = self._emit("square", [root.x], root.x.dims)
            if root.stage == "square":
                return square
            mean = self._scaled_sum(square, root)
            return self._shifted(mean, root.epsilon) if root.epsilon else mean
        size = self._size(root)
        return size if root.stage == "root" else self._emit("reciprocal", [size], size.dims)

    def _scaled_sum(self, x: _Value, root: _Root) -> _Value:
        total = self._emit("sum", [x], _without(x.dims, root.over), root.over)
        return self._emit("scale", [total], total.dims, value=1.0 / self._atoms.size(root.over))

    def _size(self, root: _Root) -> _Value:
        dims = _without(root.x.dims, root.over)
        return self._emit("rms", [root.x], dims, root.over, epsilon=root.epsilon)

    def _shifted(self, x: _Value, addend: float) -> _Value:
        return self._emit("shift", [x], x.dims, value=addend)

    def _normalized(self, x: _Value, root: _Root) -> _Value:
        return self._binary("div", x, self._size(root))

    def _mul(self, node: Node) -> _Value:
        for own, other in (node.inputs, node.inputs[::-1]):
            if self._is_root(other, "inverse"):
                return self._normalized(self._value(own), self._roots[other])
        return self._elementwise(node)

    def _div(self, node: Node) -> _Value:
        if self._is_root(node.inputs[1], "root"):
            return self._normalized(self._value(node.inputs[0]), self._roots[node.inputs[1]])
        return self._elementwise(node)

    def _elementwise(self, node: Node) -> _Value:
        a, b = map(self._value, node.inputs)
        if node.op in ("mul", "div") and b.number is not None:
            factor = b.number if node.op == "mul" else 1.0 / b.number
            return self._emit("scale", [a], self._broadcast(a, b), value=factor)
        if a.number is not None and b.number is None:
            return self._of_number(node.op, a, b)
        if b.number is not None and a.number is None and node.op in ("add", "sub"):
            addend = b.number if node.op == "add" else -b.number
            return self._emit("shift", [a], self._broadcast(a, b), value=addend)
        return self._binary(node.op, a, b)

    def _of_number(self, op: str, number: _Value, x: _Value) -> _Value:
        """Return a function of a number and a tensor."""
        assert number.number is not None
        dims = self._broadcast(number, x)
        match op:
            case "mul":
                return self._emit("scale", [x], dims, value=number.number)
            case "div":
                inverse = self._emit("reciprocal", [x], dims)
                is_one = number.number == 1.0
                return (
                    inverse if is_one else self._emit("scale", [inverse], dims, value=number.number)
                )
            case "sub":
                x = self._emit("neg", [x], dims)
        return self._emit("shift", [x], dims, value=number.number)

    def _smul(self, node: Node) -> _Value:
        x = self._value(node.inputs[0])
        return self._emit("scale", [x], x.dims, value=cast(float, node.attrs["value"]))

    def _binary(self, op: str, a: _Value, b: _Value) -> _Value:
        return self._emit(op, [a, b], self._broadcast(a, b))

    def _broadcast(self, a: _Value, b: _Value) -> list[Atoms]:
        """Align dims from the last one on; return those of the result."""
        result: list[Atoms] = []
        longest = max(len(a.dims), len(b.dims))
        one, other = (((),) * (longest - len(v.dims)) + v.dims for v in (a, b))
        for first, second in zip(one, other, strict=True):
            if first and second:
                self._atoms.identify(first, second)
            result.append(first or second)
        return result

    def _matmul(self, node: Node) -> _Value:
        a, b, *bias = map(self._value, node.inputs)
        if len(a.dims) < 2 or len(b.dims) < 2:
            raise ShapeError("a product of vectors")
        self._atoms.identify(a.dims[-1], b.dims[-2])
        batch = self._broadcast(_Value("", a.dims[:-2]), _Value("", b.dims[:-2]))
        dims = [*batch, a.dims[-2], b.dims[-1]]
        result = self._emit("matmul", [a, b], dims, a.dims[-1])
        for addend in bias:
            result = self._binary("add", result, addend)
        act = str(node.attrs.get("act", "none"))
        if act == "none":
            return result
        if act not in FUNCTIONS:
            raise ShapeError(f"{act} is no function of μGraphs")
        return self._emit(act, [result], result.dims)

    def _softmax(self, node: Node) -> _Value:
        x = self._value(node.inputs[0])
        axis = cast(int, node.attrs["axis"])
        weights = self._emit("exp", [x], x.dims)
        rest = [() if place == axis else dim for place, dim in enumerate(x.dims)]
        total = self._emit("sum", [weights], rest, x.dims[axis])
        return self._emit("div", [weights, total], x.dims)

    def _reduce_sum(self, node: Node) -> _Value:
        x = self._value(node.inputs[0])
        axes = cast(tuple[int, ...], node.attrs["axes"])
        over = tuple(atom for axis in axes for atom in x.dims[axis])
        kept = [(place, () if place in axes else dim) for place, dim in enumerate(x.dims)]
        keeps = bool(node.attrs["keepdims"])
        return self._emit("sum", [x], [d for place, d in kept if keeps or place not in axes], over)

    def _reduce_mean(self, node: Node) -> _Value:
        x = self._value(node.inputs[0])
        axes = cast(tuple[int, ...], node.attrs["axes"])
        size = self._atoms.size(tuple(atom for axis in axes for atom in x.dims[axis]))
        total = self._reduce_sum(node)
        return self._emit("scale", [total], total.dims, value=1.0 / size)

    def _layer_norm(self, node: Node) -> _Value:
        x, gain, bias = map(self._value, node.inputs)
        over = tuple(atom for dim in x.dims[cast(int, node.attrs["axis"]) :] for atom in dim)
        mean = self._scaled_sum(x, _Root(x, over, "mean"))
        centred = self._binary("sub", x, mean)
        root = _Root(centred, over, "root", cast(float, node.attrs["epsilon"]))
        unit = self._normalized(centred, root)
        return self._binary("add", self._binary("mul", unit, gain), bias)

    def _transpose(self, node: Node) -> _Value:
        x = self._value(node.inputs[0])
        perm = cast(tuple[int, ...], node.attrs["perm"])
        return _Value(x.name, tuple(x.dims[place] for place in perm), x.number)

    def _reshape(self, node: Node) -> _Value:
        x = self._value(node.inputs[0])
        shape = cast(tuple[int, ...], node.attrs["shape"])
        return _Value(x.name, tuple(self._atoms.regrouped(x.dims, shape)), x.number)

    def _opaque(self, node: Node) -> _Value:
        if node.attrs["op_type"] != "Expand":
            raise ShapeError(f"{node.attrs['op_type']} is no operator of μGraphs")
        x = self._value(node.inputs[0])
        kind = self._graph.types[node.outputs[0]]
        assert isinstance(kind, TensorType)
        dims = ((),) * (len(kind.shape) - len(x.dims)) + x.dims
        wide = (d or self._atoms.new(size) for d, size in zip(dims, kind.shape, strict=True))
        return _Value(x.name, tuple(wide), x.number)

    # --- the program ---

    def _program(self, outputs: Sequence[_Value]) -> LoweredRegion:
        names: dict[int, str] = {}

        def named(dim: Atoms) -> tuple[str, ...]:
            atoms = self._atoms.resolved(dim)
            for atom in atoms:
                names.setdefault(atom, _variable(len(names)))
            return tuple(names[atom] for atom in atoms)

        for value in (*self._inputs.values(), *self._made):
            atoms = [atom for dim in value.dims for atom in self._atoms.resolved(dim)]
            if len(set(atoms)) < len(atoms):  # rows and columns of one matrix are the same variable
                raise ShapeError("a tensor has an index variable twice")
        inputs: dict[str, Dims] = {}
        for value in self._inputs.values():
            dims = [atom for dim in value.dims for atom in self._atoms.resolved(dim)]
            inputs[value.name] = tuple(
                Dim(name, self._atoms.size((atom,)))
                for name, atom in zip(named(tuple(dims)), dims, strict=True)
            )
        steps = []
        for step in self._steps:
            attrs = dict(step.attrs) | ({"over": named(step.over)} if step.over else {})
            steps.append(Operation(step.op, step.operands, step.output, attrs))
        names_of = tuple(output.name for output in outputs)
        computed = {step.output for step in steps}
        if len(outputs) > 1 and len(computed.intersection(names_of)) < len(outputs):
            raise ShapeError("a result is another one, or an operand, as it is")
        program = MuGraph(self._name, inputs, tuple(steps), names_of)
        made = kernel_tensors(program)
        orders = []
        for output in outputs:
            orders.append(tuple(name for dim in output.dims for name in named(dim)))
            if set(variables(made[output.name])) != set(orders[-1]):
                raise ShapeError("a result is only repeated along a dim")
        return LoweredRegion(program, tuple(self._inputs), tuple(orders))


def _without(dims: Sequence[Atoms], over: Atoms) -> list[Atoms]:
    """Return the dims of a reduction that keeps those that it reduces, with one element."""
    return [() if set(dim) & set(over) else dim for dim in dims]


def _variable(number: int) -> str:
    turn, letter = divmod(number, len(_LETTERS))
    return _LETTERS[letter] + (str(turn) if turn else "")


_OPERATORS: Mapping[str, Callable[[_Lowering, Node], _Value]] = {
    "add": _Lowering._elementwise,
    "sub": _Lowering._elementwise,
    "mul": _Lowering._mul,
    "div": _Lowering._div,
    "smul": _Lowering._smul,
    "matmul": _Lowering._matmul,
    "softmax": _Lowering._softmax,
    "reduce_sum": _Lowering._reduce_sum,
    "reduce_mean": _Lowering._reduce_mean,
    "layer_norm": _Lowering._layer_norm,
    "transpose": _Lowering._transpose,
    "reshape": _Lowering._reshape,
    "opaque": _Lowering._opaque,
}
