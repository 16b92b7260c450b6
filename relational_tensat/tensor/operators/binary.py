"""Element-wise operators of two operands, with NumPy broadcasting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any, ClassVar

import numpy as np

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor.field import Field
from relational_tensat.tensor.operators.base import Operator, Types, Values
from relational_tensat.tensor.operators.onnx_form import Mapped, OnnxNode, attr_int, input_type
from relational_tensat.tensor.operators.registry import register
from relational_tensat.tensor.operators.samples import Hints, PartialApplication
from relational_tensat.tensor.operators.shapes import (
    NUMBER_DTYPES,
    broadcast,
    front_axis,
    one_dtype,
    operands,
)
from relational_tensat.tensor.operators.traits import Use
from relational_tensat.tensor.operators.work_steps import steps_of_broadcast
from relational_tensat.tensor.types import FLOAT_DTYPES, Attrs, TensorType, ValueType


class _Binary(Operator):
    """A function of two elements."""

    arity = (2, 2)
    keeps_size = True
    #: The element types that it computes with.
    accepts: ClassVar[frozenset[str]] = NUMBER_DTYPES

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        left, right = operands(self.name, inputs)
        dtype = one_dtype(self.name, [left, right], self.accepts)
        return TensorType(dtype, broadcast(self.name, left.shape, right.shape))

    def works(self, inputs: Types, output: ValueType, attrs: Attrs) -> list[tuple[str, int]]:
        """Itself, and the stretches of operands that are broadcast."""
        shapes = [kind.shape for kind in operands(self.name, inputs)]
        steps = steps_of_broadcast(broadcast(self.name, *shapes), *shapes)
        return [*super().works(inputs, output, attrs), *steps]

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        target, sibling = partial.target, partial.shapes[1 - index]
        if target is not None:
            must_be_whole = sibling is not None and sibling != target
            is_whole = must_be_whole or hints.choices.often()
            return hints.type(target) if is_whole else hints.broadcast(target)
        if sibling is None:
            return None
        match hints.choices.weighted(6, 7, 3, 4):
            case 0:
                return hints.type(sibling)
            case 1:
                return hints.broadcast(sibling)
            case 2:
                return hints.type(sibling[-1:])
            case _:
                return hints.type(hints.grown(sibling))

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        return Mapped(self.name, (node.inputs[0], _second_operand(node)))


@register
class Add(_Binary):
    """a + b; reads ONNX's sums and means of any number of operands, too."""

    name = "add"
    uses = (Use.ADDED,)
    onnx = ("Add", "Sum", "Mean")

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return inputs[0] + inputs[1]

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return sum(sizes)

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        if node.op_type == "Add":
            return super().read_onnx(node)
        count = len(node.inputs)
        if count == 1:
            return Mapped("identity", node.inputs)
        first, *others = node.inputs
        terms = reduce(lambda left, right: Mapped("add", (left, right)), others[1:],
                       Mapped("add", (first, others[0])))  # fmt: skip
        if node.op_type == "Sum":
            return terms
        dtype = input_type(node, 0).dtype
        if dtype not in FLOAT_DTYPES:
            return None
        divisor = Mapped("fill", (), {"value": float(count), "dtype": dtype, "shape": ()})
        return Mapped("div", (terms, divisor))


@register
class Sub(_Binary):
    """a - b."""

    name = "sub"
    uses = (Use.ADDED,)
    onnx = ("Sub",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return inputs[0] - inputs[1]

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return sum(sizes)


@register
class Mul(_Binary):
    """a times b, element by element."""

    name = "mul"
    onnx = ("Mul",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return inputs[0] * inputs[1]

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return math.prod(sizes)


@register
class Div(_Binary):
    """a / b; integers drop the fraction, as C and ONNX do."""

    name = "div"
    uses = (Use.VALUE, Use.POSITIVE)
    divides = True
    onnx = ("Div",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        a, b = inputs
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if np.issubdtype(np.asarray(a).dtype, np.floating):
                return a / b
            down = np.asarray(
                a // b
            )  # rounded down; -|a| // |b| would be wrong at the lowest number
            short = (down * b != a) & ((a < 0) != (b < 0)) & (b != 0)
            return (down + short).astype(np.asarray(a).dtype)

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        return field.multiply(inputs[0], field.inverse(inputs[1]))

    def is_defined(self, inputs: Values) -> bool:
        """Integers have no quotient by 0."""
        divisor = np.asarray(inputs[1])
        return np.issubdtype(divisor.dtype, np.floating) or bool(np.all(divisor))

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return sizes[0] / sizes[1]


@register
class Pow(_Binary):
    """a to the power b, for floats."""

    name = "pow"
    uses = (Use.POSITIVE, Use.EXPONENT)
    divides = True
    onnx = ("Pow",)
    accepts = FLOAT_DTYPES

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.power(inputs[0], inputs[1])

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        return field.raised(inputs[0], inputs[1])

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return sizes[0] ** 2

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        dtype = input_type(node, 0).dtype
        exponent = _second_operand(node)
        if input_type(node, 1).dtype != dtype:  # the result has the base's type
            exponent = Mapped("cast", (exponent,), {"dtype": dtype})
        return Mapped(self.name, (node.inputs[0], exponent))


def _second_operand(node: OnnxNode) -> str | Mapped:
    """Return the second operand, aligned as versions before 7 say: from ``axis`` on, or equal.

    Raises:
        ShapeError: the attributes contradict the shapes.
    """
    name = node.inputs[1]
    if node.opset >= 7:
        return name
    left, right = input_type(node, 0), input_type(node, 1)
    if not attr_int(node, "broadcast", 0):
        if left.shape != right.shape:
            raise ShapeError(f"{node.op_type}: shapes differ and broadcast is 0")
        return name
    if "axis" not in node.attributes:
        return name
    axis = front_axis(node.op_type, attr_int(node, "axis", 0), left.rank)
    trailing = left.rank - axis - right.rank
    if trailing < 0:
        raise ShapeError(f"{node.op_type}: axis {axis} leaves no room for {right}")
    return Mapped("reshape", (name,), {"shape": right.shape + (1,) * trailing})
