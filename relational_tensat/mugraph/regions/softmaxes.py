"""Softmaxes of a region, and what puts 0 in place of NaN, as exports have it behind them."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from relational_tensat.base.errors import ShapeError
from relational_tensat.mugraph.regions.region_building import Building
from relational_tensat.mugraph.regions.region_values import Value
from relational_tensat.tensor import Node


class Softmaxes:
    """The softmaxes of a region, by what they are quotients of.

    Args:
        building: the program.
        value: returns a value of the model.
    """

    def __init__(self, building: Building, value: Callable[[str], Value]) -> None:
        self._building = building
        self._value = value
        self._quotients: dict[str, tuple[Value, Value]] = {}
        self._nan_of: dict[str, str] = {}

    def softmax(self, node: Node) -> Value:
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

    def without_nan(self, node: Node) -> Value:
        """Return a value with 0 in place of NaN, which is what a ``where`` may do.

        Of a softmax either no element of a row is NaN or all are: where the sum of exponentials is NaN, or
        0, as a mask has left nothing. So it is a quotient that is 0 there.

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
