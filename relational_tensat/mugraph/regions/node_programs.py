"""From nodes of a model to a program on index variables.

Reshape, Transpose and Expand only relabel, so grouped queries need no repeated keys. Slices, splits and
gathers of one constant index, or of some at one distance, are windows of inputs. A softmax becomes its
parts, the chain of a root mean square one operator, and a product of concatenations the sum of their
products.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from relational_tensat.base.errors import RelationalTensatError, ShapeError
from relational_tensat.mugraph.graph.arithmetic import FUNCTIONS
from relational_tensat.mugraph.graph.dims import variables
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.regions.composites import (
    CONDITIONS,
    Concatenations,
    Conditions,
    RootMeanSquares,
    Softmaxes,
)
from relational_tensat.mugraph.regions.region_parts import Cut, Slide, ValueParts, gathered
from relational_tensat.mugraph.regions.region_program import Atoms, Building, RegionValue, Root
from relational_tensat.tensor import Graph, Node, TensorType
from relational_tensat.tensor.operators.attributes import ints_of, padding_of
from relational_tensat.tensor.operators.windows import resolve_padding
from relational_tensat.tensor.types import FLOAT_DTYPES


@dataclass(frozen=True, slots=True)
class LoweredRegion:
    """Nodes of a model as a program.

    Attributes:
        program: on index variables; windows of its inputs come first.
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

    Results of one shape have the same variables, if they can, so that a grid can split them together. So
    has a value that is read several times, unless rows and columns of a tensor were the same variable then.

    Args:
        graph: the model.
        nodes: in order.
        name: of the program.
        outputs: the values that it shall give; by default the last node's result.

    Raises:
        RelationalTensatError: an operator, or its use of dims, has no such form; says which.
    """
    outputs = outputs or nodes[-1].outputs
    first: RelationalTensatError | None = None
    for has_views in (False, True):
        for is_aligned in (True, False) if len(outputs) > 1 else (False,):
            try:
                lowering = _RegionLowering(graph, name, has_views=has_views)
                return lowering.lower(nodes, outputs, is_aligned=is_aligned)
            except RelationalTensatError as error:
                first = first or error
    assert first is not None
    raise first


class _RegionLowering:
    def __init__(self, graph: Graph, name: str, *, has_views: bool) -> None:
        self._graph = graph
        self._name = name
        self._has_views = has_views
        self._building = Building()
        self._atoms = self._building.atoms
        self._emit = self._building.emit
        self._parts = ValueParts(self._building)
        self._values: dict[str, RegionValue] = {}
        self._roots = RootMeanSquares(self._building, self._value)
        self._softmaxes = Softmaxes(self._building, self._value)
        self._conditions = Conditions(self._building, self._value, self._broadcast)
        self._concatenations = Concatenations(
            graph, self._parts, self._building, self._value, self._binary
        )

    def lower(
        self, nodes: Sequence[Node], outputs: Sequence[str], *, is_aligned: bool
    ) -> LoweredRegion:
        for node in nodes:
            self._node(node)
        results = [self._value(name) for name in outputs]
        if any(result.number is not None for result in results):
            raise ShapeError("a number by another shape")
        if is_aligned:
            self._align(results)
        if self._has_views:
            self._building.join_views(results)
        program, inputs, orders = self._building.program(self._name, results)
        return LoweredRegion(program, tuple(inputs), tuple(map(variables, orders)))

    def _align(self, values: Sequence[RegionValue]) -> None:
        first, *others = values
        for other in others:
            for mine, its in zip(first.dims, other.dims, strict=False):
                if self._atoms.size(mine) == self._atoms.size(its):
                    self._atoms.identify(mine, its)

    # --- operands ---

    def _value(self, name: str) -> RegionValue:
        if name in self._values:
            return self._values[name]
        stage = self._roots.stage(name)
        if stage is None:
            stage = self._concatenations.stage(name)
        if stage is None:
            return self._input(name)
        self._values[name] = stage
        return stage

    def _input(self, name: str) -> RegionValue:
        kind = self._graph.types[name]
        is_condition = isinstance(kind, TensorType) and kind.dtype == "bool"
        if not isinstance(kind, TensorType) or not (kind.is_float or is_condition):
            raise ShapeError(f"{name} is {kind}, expected a tensor of floats or bools")
        if is_condition:
            self._building.conditions.add(name)
        weight = self._graph.weights.get(name)
        if weight is not None and weight.data is not None and kind.size == 1:
            return RegionValue(
                "", tuple(() for _ in kind.shape), float(np.asarray(weight.data).item())
            )
        is_again = name in self._building.inputs
        value = self._building.read(name, kind.shape)
        return self._parts.view(value) if is_again and self._has_views else value

    # --- operators ---

    def _node(self, node: Node) -> None:
        if not node.inputs:
            raise ShapeError(f"{node.op} is no operator of μGraphs")
        if self._roots.takes(node):
            return
        if node.op == "split":
            self._split(node)
        elif node.op == "is_nan":
            self._softmaxes.note_condition(node)
        elif node.op == "concat":
            self._concatenations.note(node)
        elif node.op in _OPERATORS:
            self._values[node.outputs[0]] = _OPERATORS[node.op](self, node)
        elif node.op in FUNCTIONS:
            x = self._value(node.inputs[0])
            self._values[node.outputs[0]] = self._emit(node.op, [x], x.dims)
        else:
            raise ShapeError(f"{node.op} is no operator of μGraphs")

    def _normalized(self, x: RegionValue, root: Root) -> RegionValue:
        return self._binary("div", x, self._roots.size(root))

    def _mul(self, node: Node) -> RegionValue:
        for own, other in (node.inputs, node.inputs[::-1]):
            root = self._roots.inverse(other)
            if root is not None:
                return self._normalized(self._value(own), root)
        return self._elementwise(node)

    def _div(self, node: Node) -> RegionValue:
        root = self._roots.root(node.inputs[1])
        if root is not None:
            return self._normalized(self._value(node.inputs[0]), root)
        return self._elementwise(node)

    def _elementwise(self, node: Node) -> RegionValue:
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

    def _of_number(self, op: str, number: RegionValue, x: RegionValue) -> RegionValue:
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

    def _pow(self, node: Node) -> RegionValue:
        """Return a power; squares are taken before, and cubes are those of GELU's approximation by tanh."""
        x, exponent = map(self._value, node.inputs)
        if x.number is not None:
            raise ShapeError("a power of a number is no operator of μGraphs")
        if exponent.number is None:
            return self._binary("pow", x, exponent)
        dims = self._broadcast(x, exponent)
        if exponent.number != 3.0:
            return self._emit("power", [x], dims, value=exponent.number)
        square = self._emit("square", [x], dims)
        return self._binary("mul", square, x)

    def _where(self, node: Node) -> RegionValue:
        if self._softmaxes.has_condition(node):
            return self._softmaxes.without_nan(node)
        return self._conditions.chosen(node)

    def _smul(self, node: Node) -> RegionValue:
        x = self._value(node.inputs[0])
        return self._emit("scale", [x], x.dims, value=cast(float, node.attrs["value"]))

    def _binary(self, op: str, a: RegionValue, b: RegionValue) -> RegionValue:
        return self._emit(op, [a, b], self._broadcast(a, b))

    def _broadcast(self, a: RegionValue, b: RegionValue) -> list[Atoms]:
        """Align dims from the last one on; return those of the result."""
        result: list[Atoms] = []
        longest = max(len(a.dims), len(b.dims))
        one, other = (((),) * (longest - len(v.dims)) + v.dims for v in (a, b))
        for first, second in zip(one, other, strict=True):
            if first and second:
                self._atoms.identify(first, second)
            result.append(first or second)
        return result

    def _matmul(self, node: Node) -> RegionValue:
        pieces = [self._product(a, b) for a, b in self._concatenations.factors(*node.inputs[:2])]
        result = self._concatenations.added([*pieces, *map(self._value, node.inputs[2:])])
        return self._activated(node, result)

    def _activated(self, node: Node, result: RegionValue) -> RegionValue:
        act = str(node.attrs.get("act", "none"))
        if act == "none":
            return result
        if act not in FUNCTIONS:
            raise ShapeError(f"{act} is no function of μGraphs")
        return self._emit(act, [result], result.dims)

    def _conv(self, node: Node) -> RegionValue:
        """Return a convolution of each channel: sums over what windows show, times weights."""
        x, w, *bias = map(self._value, node.inputs)
        kinds = [cast(TensorType, self._graph.types[name]) for name in node.inputs]
        (_, channels, *sizes), (filters, per_filter, *taps) = (kind.shape for kind in kinds[:2])
        if per_filter != 1 or channels != filters:
            raise ShapeError("a convolution that sums channels, or has several filters of one")
        if x.number is not None or w.number is not None:
            raise ShapeError("a convolution of a number")
        stride, dilation = ints_of(node.attrs, "stride"), ints_of(node.attrs, "dilation")
        dilation = dilation or (1,) * len(sizes)
        before, _ = resolve_padding(padding_of(node.attrs), sizes, taps, stride, dilation)
        self._atoms.identify(x.dims[1], w.dims[0])
        out = cast(TensorType, self._graph.types[node.outputs[0]]).shape[2:]
        shown = x
        for place, size in enumerate(out):
            slide = Slide(w.dims[2 + place], stride[place], dilation[place], before[place])
            shown = self._parts.slid(shown, 2 + place, size, slide)
        rank = len(x.dims)
        result = self._emit("mul", [shown, w], shown.dims)
        if over := tuple(atom for dim in shown.dims[rank:] for atom in dim):
            result = self._emit("sum", [result], shown.dims[:rank], over)
        result = RegionValue(result.name, shown.dims[:rank])
        for each in bias:
            if each.number is not None:
                result = self._emit("shift", [result], result.dims, value=each.number)
                continue
            dims = (each.dims[0], *((),) * len(sizes))
            result = self._binary("add", result, RegionValue(each.name, dims))
        return self._activated(node, result)

    def _product(self, a: RegionValue, b: RegionValue) -> RegionValue:
        if len(a.dims) < 2 or len(b.dims) < 2:
            raise ShapeError("a product of vectors")
        self._atoms.identify(a.dims[-1], b.dims[-2])
        batch = self._broadcast(RegionValue("", a.dims[:-2]), RegionValue("", b.dims[:-2]))
        dims = [*batch, a.dims[-2], b.dims[-1]]
        return self._emit("matmul", [a, b], dims, a.dims[-1])

    def _reduced(self, node: Node, op: str = "sum") -> RegionValue:
        x = self._value(node.inputs[0])
        axes = cast(tuple[int, ...], node.attrs["axes"])
        over = tuple(atom for axis in axes for atom in x.dims[axis])
        kept = [(place, () if place in axes else dim) for place, dim in enumerate(x.dims)]
        keeps = bool(node.attrs["keepdims"])
        return self._emit(op, [x], [d for place, d in kept if keeps or place not in axes], over)

    def _reduce_mean(self, node: Node) -> RegionValue:
        x = self._value(node.inputs[0])
        axes = cast(tuple[int, ...], node.attrs["axes"])
        size = self._atoms.size(tuple(atom for axis in axes for atom in x.dims[axis]))
        total = self._reduced(node)
        return self._emit("scale", [total], total.dims, value=1.0 / size)

    def _layer_norm(self, node: Node) -> RegionValue:
        x, gain, *bias = map(self._value, node.inputs)
        over = tuple(atom for dim in x.dims[cast(int, node.attrs["axis"]) :] for atom in dim)
        mean = self._roots.mean(x, over)
        centred = self._binary("sub", x, mean)
        root = Root(centred, over, "root", cast(float, node.attrs["epsilon"]))
        unit = self._normalized(centred, root)
        scaled = self._binary("mul", unit, gain)
        return self._binary("add", scaled, *bias) if bias else scaled

    # --- what moves elements only ---

    def _transpose(self, node: Node) -> RegionValue:
        x = self._value(node.inputs[0])
        perm = cast(tuple[int, ...], node.attrs["perm"])
        return RegionValue(x.name, tuple(x.dims[place] for place in perm), x.number)

    def _reshape(self, node: Node) -> RegionValue:
        x = self._value(node.inputs[0])
        shape = cast(tuple[int, ...], node.attrs["shape"])
        return RegionValue(x.name, tuple(self._atoms.regrouped(x.dims, shape)), x.number)

    def _opaque(self, node: Node) -> RegionValue:
        raise ShapeError(f"{node.attrs['op_type']} is no operator of μGraphs")

    def _expand(self, node: Node) -> RegionValue:
        x = self._value(node.inputs[0])
        shape = cast(tuple[int, ...], node.attrs["shape"])
        dims = ((),) * (len(shape) - len(x.dims)) + x.dims
        wide = (d or self._atoms.new(size) for d, size in zip(dims, shape, strict=True))
        return RegionValue(x.name, tuple(wide), x.number)

    def _cast(self, node: Node) -> RegionValue:
        """Return the operand: between floats a cast changes no value but by rounding."""
        if node.attrs["dtype"] not in FLOAT_DTYPES:
            raise ShapeError(f"a cast to {node.attrs['dtype']} is no operator of μGraphs")
        return self._value(node.inputs[0])

    def _slice(self, node: Node) -> RegionValue:
        value = self._tensor(node)
        lists = [cast(tuple[int, ...], node.attrs[n]) for n in ("axes", "starts", "ends", "steps")]
        for axis, start, end, step in zip(*lists, strict=True):
            size = len(range(start, end, step))
            value = self._parts.part(value, axis, Cut(start, step), size)
        return value

    def _split(self, node: Node) -> None:
        axis, sizes = cast(int, node.attrs["axis"]), cast(tuple[int, ...], node.attrs["sizes"])
        start = 0
        for output, size in zip(node.outputs, sizes, strict=True):
            self._values[output] = self._parts.part(self._tensor(node), axis, Cut(start), size)
            start += size

    def _gather(self, node: Node) -> RegionValue:
        """Return the elements that constant indices name: one, or several at one distance."""
        value, axis = self._tensor(node), cast(int, node.attrs["axis"])
        indices = self._graph.weights.get(node.inputs[1])
        cut, size = gathered(indices, self._atoms.size(value.dims[axis]))
        part = self._parts.part(value, axis, cut, size)
        rank = cast(TensorType, self._graph.types[node.inputs[1]]).rank
        dims = (part.dims[axis],) if size > 1 else ((),) * rank
        return RegionValue(part.name, (*part.dims[:axis], *dims, *part.dims[axis + 1 :]))

    def _tensor(self, node: Node) -> RegionValue:
        value = self._value(node.inputs[0])
        if value.number is not None:
            raise ShapeError(f"{node.op} of a number")
        return self._parts.view(value) if self._has_views else value


_OPERATORS: Mapping[str, Callable[[_RegionLowering, Node], RegionValue]] = {
    "add": _RegionLowering._elementwise,
    "cast": _RegionLowering._cast,
    "conv": _RegionLowering._conv,
    "div": _RegionLowering._div,
    "expand": _RegionLowering._expand,
    "gather": _RegionLowering._gather,
    "layer_norm": _RegionLowering._layer_norm,
    "matmul": _RegionLowering._matmul,
    "mul": _RegionLowering._mul,
    "opaque": _RegionLowering._opaque,
    "pow": _RegionLowering._pow,
    "reduce_max": lambda lowering, node: lowering._reduced(node, "reduce_max"),
    "reduce_mean": _RegionLowering._reduce_mean,
    "reduce_sum": _RegionLowering._reduced,
    "reshape": _RegionLowering._reshape,
    "slice": _RegionLowering._slice,
    "smul": _RegionLowering._smul,
    "softmax": lambda lowering, node: lowering._softmaxes.softmax(node),
    "sub": _RegionLowering._elementwise,
    "transpose": _RegionLowering._transpose,
    "where": _RegionLowering._where,
    **dict.fromkeys(CONDITIONS, lambda lowering, node: lowering._conditions.condition(node)),
}
