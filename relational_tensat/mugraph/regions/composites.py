"""Steps of a program that a model has as several nodes: softmaxes, norms, joins, choices.

One is a softmax with nodes behind it that put 0 in place of NaN, as exports have it. Another is the chain
of a root mean square, 1 / sqrt(mean(x²) + epsilon): it is one operator unless its parts are read. A
concatenation is a sum of parts that are padded with zeros, or of products of its parts. The last are
choices by a condition.

A condition is 1 or 0 within a kernel. A compared value is read as it is, or is a number: kernels round
otherwise than the model's operators do, and that could decide a comparison of computed values otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import cast

from relational_tensat.base.errors import ShapeError
from relational_tensat.mugraph.regions.region_parts import Cut, ValueParts
from relational_tensat.mugraph.regions.region_program import Atoms, Building, RegionValue, Root
from relational_tensat.tensor import Graph, Node, TensorType


class RootMeanSquares:
    """The parts of such chains in a region.

    Args:
        building: the program.
        value: returns a value of the model.
    """

    def __init__(self, building: Building, value: Callable[[str], RegionValue]) -> None:
        self._building = building
        self._value = value
        self._roots: dict[str, Root] = {}

    def takes(self, node: Node) -> bool:
        """Note the part of a chain that a node is; return whether it is one."""
        root = self._next(node)
        if root is not None:
            self._roots[node.outputs[0]] = root
        return root is not None

    def inverse(self, name: str) -> Root | None:
        """Return the chain whose end a value is: 1 / root."""
        return self._at(name, "inverse")

    def root(self, name: str) -> Root | None:
        """Return the chain whose root a value is."""
        return self._at(name, "root")

    def stage(self, name: str) -> RegionValue | None:
        """Return a part of a chain as what it is; None for anything else."""
        if name not in self._roots:
            return None
        root = self._roots[name]
        if root.stage in ("square", "mean"):
            square = self._building.emit("square", [root.x], root.x.dims)
            if root.stage == "square":
                return square
            mean = self.mean(square, root.over)
            if not root.epsilon:
                return mean
            return self._building.emit("shift", [mean], mean.dims, value=root.epsilon)
        size = self.size(root)
        if root.stage == "root":
            return size
        return self._building.emit("reciprocal", [size], size.dims)

    def mean(self, x: RegionValue, over: Atoms) -> RegionValue:
        """Return a mean that keeps the dims that it is over, with one element."""
        total = self._building.emit("sum", [x], without(x.dims, over), over)
        factor = 1.0 / self._building.atoms.size(over)
        return self._building.emit("scale", [total], total.dims, value=factor)

    def size(self, root: Root) -> RegionValue:
        """Return the root mean square."""
        dims = without(root.x.dims, root.over)
        return self._building.emit("rms", [root.x], dims, root.over, epsilon=root.epsilon)

    def _at(self, name: str, stage: str) -> Root | None:
        root = self._roots.get(name)
        return root if root is not None and root.stage == stage else None

    def _next(self, node: Node) -> Root | None:
        """Return the part that a node is; None for no part."""
        root = self._roots.get(node.inputs[0])
        match node.op, root.stage if root else "":
            case "pow", _ if self._value(node.inputs[1]).number == 2.0:
                return Root(self._value(node.inputs[0]), (), "square")
            case "reduce_mean", "square" if root and node.attrs["keepdims"]:
                axes = cast(tuple[int, ...], node.attrs["axes"])
                over = tuple(atom for axis in axes for atom in root.x.dims[axis])
                return Root(root.x, over, "mean")
            case "add", "mean" if root and not root.epsilon:
                epsilon = self._value(node.inputs[1]).number
                return Root(root.x, root.over, "mean", epsilon) if epsilon else None
            case "sqrt", "mean" if root:
                return Root(root.x, root.over, "root", root.epsilon)
            case "reciprocal", "root" if root:
                return Root(root.x, root.over, "inverse", root.epsilon)
            case "div", "":
                divisor = self.root(node.inputs[1])
                is_one = divisor is not None and self._value(node.inputs[0]).number == 1.0
                if divisor is not None and is_one:
                    return Root(divisor.x, divisor.over, "inverse", divisor.epsilon)
        return None


def without(dims: Sequence[Atoms], over: Atoms) -> list[Atoms]:
    """Return the dims of a reduction that keeps those that it reduces, with one element."""
    return [() if set(dim) & set(over) else dim for dim in dims]


class Concatenations:
    """The concatenations of a region.

    Args:
        graph: the model.
        parts: of values.
        building: the program.
        value: returns a value of the model.
        binary: returns what an operator makes of two values.
    """

    def __init__(
        self,
        graph: Graph,
        parts: ValueParts,
        building: Building,
        value: Callable[[str], RegionValue],
        binary: Callable[[str, RegionValue, RegionValue], RegionValue],
    ) -> None:
        self._graph = graph
        self._parts = parts
        self._building = building
        self._value = value
        self._binary = binary
        self._joined: dict[str, tuple[int, tuple[str, ...]]] = {}

    def note(self, node: Node) -> None:
        """Take a concatenation: its form depends on its readers."""
        self._joined[node.outputs[0]] = cast(int, node.attrs["axis"]), node.inputs

    def stage(self, name: str) -> RegionValue | None:
        """Return a concatenation as a sum; None where a value is not one.

        Raises:
            ShapeError: it has no such form.
        """
        return self._sum_of_joined(name) if name in self._joined else None

    def factors(self, a: str, b: str) -> list[tuple[RegionValue, RegionValue]]:
        """Return what a product is the sum of: several where an operand is joined along the sum."""
        axes = (-1, -2)  # that is summed over
        joined = [self._joined_along(name, axis) for name, axis in zip((a, b), axes, strict=True)]
        if joined[0] and self._sizes(joined[0], -1) == self._sizes(joined[1], -2):
            return [(self._value(x), self._value(y)) for x, y in zip(*joined, strict=True)]
        for place, names in enumerate(joined):
            if not names:
                continue
            other = self._value(b if place == 0 else a)
            start, pairs = 0, []
            sizes = self._sizes(names, axes[place])
            for value, size in zip(map(self._value, names), sizes, strict=True):
                summed = len(other.dims) + axes[1 - place]
                part = self._parts.part(other, summed, Cut(start), size)
                pairs.append((value, part) if place == 0 else (part, value))
                start += size
            return pairs
        return [(self._value(a), self._value(b))]

    def _joined_along(self, name: str, axis: int) -> tuple[str, ...]:
        """Return what a value is joined of along an axis, counted from the end; nothing if it is not."""
        along, names = self._joined.get(name, (0, ()))
        kind = self._graph.types[name]
        return names if isinstance(kind, TensorType) and along == kind.rank + axis else ()

    def _sizes(self, names: Sequence[str], axis: int) -> list[int]:
        kinds = (self._graph.types[name] for name in names)
        return [kind.shape[axis] for kind in kinds if isinstance(kind, TensorType)]

    def _sum_of_joined(self, name: str) -> RegionValue:
        axis, names = self._joined[name]
        values = [self._value(one) for one in names]
        if any(value.number is not None for value in values):
            raise ShapeError("concat of a number")
        factored = self._parts.factored(values, axis)
        if factored is None:
            return self.added(self._parts.joined(values, axis))
        others = self.added(self._parts.joined(factored.others, factored.axis))
        dims = list(values[0].dims)
        dims[axis] = others.dims[factored.axis]
        operands = [factored.factor, others][:: 1 if factored.is_first else -1]
        return self._building.emit("matmul", operands, dims, factored.over)

    def added(self, values: Sequence[RegionValue]) -> RegionValue:
        """Return the sum of values."""
        return reduce(partial(self._binary, "add"), values)


#: Operators that make conditions.
CONDITIONS = frozenset(
    {"less", "less_or_equal", "equal", "logical_not", "logical_and", "logical_or"}
)
_TURNED = {"less": "greater", "less_or_equal": "greater_or_equal", "equal": "equal"}
#: Where nothing is chosen of one of two tensors: added to a number it leaves that as it is, 0, too.
_NOTHING = -0.0


class Conditions:
    """The conditions of a region.

    Args:
        building: the program.
        value: returns a value of the model.
        broadcast: returns the dims of a function of two values.
    """

    def __init__(
        self,
        building: Building,
        value: Callable[[str], RegionValue],
        broadcast: Callable[[RegionValue, RegionValue], list[Atoms]],
    ) -> None:
        self._building = building
        self._value = value
        self._broadcast = broadcast

    def condition(self, node: Node) -> RegionValue:
        """Return a condition.

        Raises:
            ShapeError: it compares what is computed, or two numbers.
        """
        if not node.op.startswith("logical"):
            return self._comparison(node)
        first, *others = map(self._value, node.inputs)
        if node.op == "logical_not":
            return self._not(first)
        (second,) = others
        if node.op == "logical_and":
            return self._emit("mul", first, second)
        return self._not(self._emit("mul", self._not(first), self._not(second)))

    def chosen(self, node: Node) -> RegionValue:
        """Return what a condition chooses of two values.

        Raises:
            ShapeError: of two infinite numbers.
        """
        condition, first, second = map(self._value, node.inputs)
        if first.number is not None and second.number is not None:
            return self._of_numbers(condition, first, second)
        if second.number is not None:
            return self._kept(condition, first, second.number, second)
        if first.number is not None:
            return self._kept(self._not(condition), second, first.number, first)
        others = self._kept(self._not(condition), second, _NOTHING)
        return self._emit("add", self._kept(condition, first, _NOTHING), others)

    def _comparison(self, node: Node) -> RegionValue:
        a, b = map(self._value, node.inputs)
        for x in (a, b):
            if x.number is None and self._building.made_by(x.name) is not None:
                raise ShapeError(
                    f"{node.op} of a computed value, which rounding may decide otherwise"
                )
        if a.number is None and b.number is None:
            return self._emit(node.op, a, b)
        if a.number is not None and b.number is not None:
            raise ShapeError(f"{node.op} of two numbers")
        x, number = (a, b.number) if a.number is None else (b, a.number)
        op = node.op if a.number is None else _TURNED[node.op]
        return self._building.emit(f"is_{op}", [x], self._broadcast(a, b), value=number or 0.0)

    def _of_numbers(
        self, condition: RegionValue, first: RegionValue, second: RegionValue
    ) -> RegionValue:
        """Return one of two numbers: a finite one times the condition, kept where that holds."""
        dims = self._broadcast(RegionValue("", tuple(self._broadcast(condition, first))), second)
        one, other = first.number or 0.0, second.number or 0.0
        if not math.isfinite(one):
            condition, one, other = self._not(condition), other, one
        if not math.isfinite(one):
            raise ShapeError("where of two infinite numbers")
        times = self._building.emit("scale", [condition], condition.dims, value=one)
        return self._building.emit("keep", [condition, times], dims, value=other)

    def _kept(
        self,
        condition: RegionValue,
        x: RegionValue,
        value: float,
        number: RegionValue | None = None,
    ) -> RegionValue:
        dims = self._broadcast(condition, x)
        if number is not None:
            dims = self._broadcast(RegionValue("", tuple(dims)), number)
        return self._building.emit("keep", [condition, x], dims, value=value)

    def _not(self, condition: RegionValue) -> RegionValue:
        return self._building.emit("is_equal", [condition], condition.dims, value=0.0)

    def _emit(self, op: str, a: RegionValue, b: RegionValue) -> RegionValue:
        return self._building.emit(op, [a, b], self._broadcast(a, b))


class Softmaxes:
    """The softmaxes of a region, by what they are quotients of.

    Args:
        building: the program.
        value: returns a value of the model.
    """

    def __init__(self, building: Building, value: Callable[[str], RegionValue]) -> None:
        self._building = building
        self._value = value
        self._quotients: dict[str, tuple[RegionValue, RegionValue]] = {}
        self._nan_of: dict[str, str] = {}

    def softmax(self, node: Node) -> RegionValue:
        """Return a softmax as its parts."""
        emit, x = self._building.emit, self._value(node.inputs[0])
        axis = cast(int, node.attrs["axis"])
        weights = emit("exp", [x], x.dims)
        rest = [() if place == axis else dim for place, dim in enumerate(x.dims)]
        total = emit("sum", [weights], rest, x.dims[axis])
        self._quotients[node.outputs[0]] = weights, total
        return emit("div", [weights, total], x.dims)

    def note_condition(self, node: Node) -> None:
        """Note what a condition is about; it is no value of a program."""
        self._nan_of[node.outputs[0]] = node.inputs[0]

    def has_condition(self, node: Node) -> bool:
        """Whether what a ``where`` chooses by is whether something is NaN."""
        return node.inputs[0] in self._nan_of

    def without_nan(self, node: Node) -> RegionValue:
        """Return a value with 0 in place of NaN, which is what a ``where`` may do.

        Of a softmax either no element of a row is NaN or all are: those where the sum of exponentials is
        NaN, or 0, as a mask has left nothing. So it is a quotient that is 0 there.

        Raises:
            ShapeError: the node does something else.
        """
        condition, zero, other = node.inputs
        number = self._value(zero)
        if self._nan_of[condition] != other or number.number != 0.0:
            raise ShapeError("where but to put 0 in place of NaN is no operator of μGraphs")
        x = self._value(other)
        dims = ((),) * (len(number.dims) - len(x.dims)) + x.dims
        if other in self._quotients:
            return self._building.emit("div_or_zero", self._quotients[other], dims)
        return self._building.emit("nan_to_zero", [x], dims)
