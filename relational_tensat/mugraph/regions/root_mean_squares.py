"""The chain of a root mean square, 1 / sqrt(mean(x²) + epsilon): one operator, unless parts are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from relational_tensat.mugraph.regions.region_building import Building
from relational_tensat.mugraph.regions.region_values import Root, Value
from relational_tensat.mugraph.regions.relabelling import Atoms
from relational_tensat.tensor import Node


class RootMeanSquares:
    """The parts of such chains in a region.

    Args:
        building: the program.
        value: returns a value of the model.
    """

    def __init__(self, building: Building, value: Callable[[str], Value]) -> None:
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

    def stage(self, name: str) -> Value | None:
        """Return a part of a chain as what it is; None for what is none."""
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

    def mean(self, x: Value, over: Atoms) -> Value:
        """Return a mean that keeps the dims that it is over, with one element."""
        total = self._building.emit("sum", [x], without(x.dims, over), over)
        factor = 1.0 / self._building.atoms.size(over)
        return self._building.emit("scale", [total], total.dims, value=factor)

    def size(self, root: Root) -> Value:
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
