"""Concatenations of a region: sums of what is padded with zeros, or of products of their parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import cast

from relational_tensat.base.errors import ShapeError
from relational_tensat.mugraph.regions.region_building import Building
from relational_tensat.mugraph.regions.region_values import Value
from relational_tensat.mugraph.regions.taking_parts import Cut, Parts
from relational_tensat.tensor import Graph, Node, TensorType


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
        parts: Parts,
        building: Building,
        value: Callable[[str], Value],
        binary: Callable[[str, Value, Value], Value],
    ) -> None:
        self._graph = graph
        self._parts = parts
        self._building = building
        self._value = value
        self._binary = binary
        self._joined: dict[str, tuple[int, tuple[str, ...]]] = {}

    def note(self, node: Node) -> None:
        """Take a concatenation: what it becomes depends on what reads it."""
        self._joined[node.outputs[0]] = cast(int, node.attrs["axis"]), node.inputs

    def stage(self, name: str) -> Value | None:
        """Return a concatenation as a sum; None where a value is none.

        Raises:
            ShapeError: it has no such form.
        """
        return self._sum_of_joined(name) if name in self._joined else None

    def factors(self, a: str, b: str) -> list[tuple[Value, Value]]:
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

    def _sum_of_joined(self, name: str) -> Value:
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

    def added(self, values: Sequence[Value]) -> Value:
        """Return the sum of values."""
        return reduce(partial(self._binary, "add"), values)
