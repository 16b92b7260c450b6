"""Conditions that a region computes, and what is chosen by them.

A condition is 1 or 0 within a kernel. What is compared is read as it is, or a number: kernels round
otherwise than the model's operators do, and that could decide a comparison of computed values otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from relational_tensat.base.errors import ShapeError
from relational_tensat.mugraph.regions.region_building import Building
from relational_tensat.mugraph.regions.region_values import Value
from relational_tensat.mugraph.regions.relabelling import Atoms
from relational_tensat.tensor import Node

#: What makes conditions.
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
        value: Callable[[str], Value],
        broadcast: Callable[[Value, Value], list[Atoms]],
    ) -> None:
        self._building = building
        self._value = value
        self._broadcast = broadcast

    def condition(self, node: Node) -> Value:
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

    def chosen(self, node: Node) -> Value:
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

    def _comparison(self, node: Node) -> Value:
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

    def _of_numbers(self, condition: Value, first: Value, second: Value) -> Value:
        """Return one of two numbers: a finite one times the condition, kept where that holds."""
        dims = self._broadcast(Value("", tuple(self._broadcast(condition, first))), second)
        one, other = first.number or 0.0, second.number or 0.0
        if not math.isfinite(one):
            condition, one, other = self._not(condition), other, one
        if not math.isfinite(one):
            raise ShapeError("where of two infinite numbers")
        times = self._building.emit("scale", [condition], condition.dims, value=one)
        return self._building.emit("keep", [condition, times], dims, value=other)

    def _kept(self, condition: Value, x: Value, value: float, number: Value | None = None) -> Value:
        dims = self._broadcast(condition, x)
        if number is not None:
            dims = self._broadcast(Value("", tuple(dims)), number)
        return self._building.emit("keep", [condition, x], dims, value=value)

    def _not(self, condition: Value) -> Value:
        return self._building.emit("is_equal", [condition], condition.dims, value=0.0)

    def _emit(self, op: str, a: Value, b: Value) -> Value:
        return self._building.emit(op, [a, b], self._broadcast(a, b))
