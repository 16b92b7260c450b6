"""Element-wise operators of one operand: their base class, arithmetic and its functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from relational_tensat.tensor.field import Field
from relational_tensat.tensor.floats import erf
from relational_tensat.tensor.operators.attributes import Attr, float_of
from relational_tensat.tensor.operators.base import Operator, Types, Values, tensor
from relational_tensat.tensor.operators.onnx_form import (
    Mapped,
    Names,
    OnnxEmitter,
    OnnxNode,
    emit_constant,
)
from relational_tensat.tensor.operators.registry import register
from relational_tensat.tensor.operators.samples import NUMBERS
from relational_tensat.tensor.operators.shapes import NUMBER_DTYPES, SIGNED_DTYPES, one_dtype
from relational_tensat.tensor.operators.traits import Use
from relational_tensat.tensor.types import FLOAT_DTYPES, Attrs, TensorType, ValueType


class Unary(Operator):
    """A function of each element; the result has the operand's type."""

    #: The element types that it computes with.
    accepts: ClassVar[frozenset[str]] = FLOAT_DTYPES

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        kind = tensor(inputs[0], self.name)
        one_dtype(self.name, [kind], self.accepts)
        return kind

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        """A random function, one per value of the attributes."""
        attr_texts = [f"{name}={value}" for name, value in attrs.items()]
        return field.function(" ".join([self.name, *attr_texts]), inputs[0])

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        return Mapped(self.name, (node.inputs[0],))


@register
class Exp(Unary):
    """e to the x."""

    name = "exp"
    uses = (Use.SCORE,)
    onnx = ("Exp",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        with np.errstate(over="ignore"):
            return np.exp(inputs[0])

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return math.exp(min(sizes[0], 20.0))


@register
class Sqrt(Unary):
    """Square root; NaN below 0."""

    name = "sqrt"
    uses = (Use.POSITIVE,)
    onnx = ("Sqrt",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        with np.errstate(invalid="ignore"):
            return np.sqrt(inputs[0])

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return math.sqrt(sizes[0])


@register
class Erf(Unary):
    """The error function."""

    name = "erf"
    onnx = ("Erf",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return erf(inputs[0])

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return min(sizes[0], 1.0)


@register
class Cos(Unary):
    """Cosine, of radians."""

    name = "cos"
    onnx = ("Cos",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        with np.errstate(invalid="ignore"):
            return np.cos(inputs[0])

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return 1.0


@register
class Sin(Unary):
    """Sine, of radians."""

    name = "sin"
    onnx = ("Sin",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        with np.errstate(invalid="ignore"):
            return np.sin(inputs[0])

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return min(sizes[0], 1.0)


@register
class Neg(Unary):
    """-x."""

    name = "neg"
    is_exact = True
    keeps_size = True
    onnx = ("Neg",)
    accepts = SIGNED_DTYPES

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return np.negative(inputs[0])

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        return field.reduced(np.negative(inputs[0]))


@register
class Abs(Unary):
    """|x|."""

    name = "abs"
    is_exact = True
    keeps_size = True
    onnx = ("Abs",)
    accepts = NUMBER_DTYPES

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return np.abs(inputs[0])


@register
class Log(Unary):
    """Natural logarithm; -infinity at 0, NaN below."""

    name = "log"
    uses = (Use.POSITIVE,)
    onnx = ("Log",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(inputs[0])

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return 1.0


@register
class Reciprocal(Unary):
    """1 / x."""

    name = "reciprocal"
    uses = (Use.POSITIVE,)
    divides = True
    onnx = ("Reciprocal",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        with np.errstate(divide="ignore"):
            return 1.0 / inputs[0]

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        return field.inverse(inputs[0])

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return 1.0 / sizes[0]


@register
class Smul(Unary):
    """A number times a tensor."""

    name = "smul"
    attrs = (Attr("value", "float", samples=NUMBERS, timed_as=0.5),)
    keeps_size = True

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return inputs[0] * float_of(attrs, "value")

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return abs(float_of(attrs, "value")) * sizes[0]

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        return field.multiply(inputs[0], field.constant(float_of(attrs, "value")))

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        dtype = tensor(types[0], self.name).dtype
        factor = emit_constant(emitter, float_of(attrs, "value"), dtype)
        return emitter.emit("Mul", [inputs[0], factor])
