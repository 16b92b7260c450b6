"""Element-wise operators of one operand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from relational_tensat.tensor.field import Field
from relational_tensat.tensor.floats import FLOAT_FORMATS
from relational_tensat.tensor.operators.activations import activate
from relational_tensat.tensor.operators.attributes import Attr, float_of, str_of
from relational_tensat.tensor.operators.base import Operator, Types, Values, tensor
from relational_tensat.tensor.operators.erf import erf
from relational_tensat.tensor.operators.onnx_form import Mapped, Names, OnnxEmitter, OnnxNode
from relational_tensat.tensor.operators.onnx_read import (
    attr_float,
    attr_str,
    constant_float,
    input_type,
)
from relational_tensat.tensor.operators.onnx_write import emit_constant
from relational_tensat.tensor.operators.registry import register
from relational_tensat.tensor.operators.sampling import NUMBERS
from relational_tensat.tensor.operators.shapes import NUMBER_DTYPES, SIGNED_DTYPES, one_dtype
from relational_tensat.tensor.operators.traits import Use
from relational_tensat.tensor.types import FLOAT_DTYPES, Attrs, TensorType, ValueType

#: What is left of the root mean square where half of the elements become 0.
_HALF = math.sqrt(0.5)


class _Unary(Operator):
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
class Relu(_Unary):
    """max(x, 0)."""

    name = "relu"
    is_exact = True
    keeps_size = True
    onnx = ("Relu",)
    accepts = NUMBER_DTYPES

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return activate("relu", inputs[0])

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return _HALF * sizes[0]

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        kind = tensor(types[0], self.name)
        if kind.is_float or (emitter.opset >= 14 and kind.dtype in SIGNED_DTYPES):
            return emitter.emit("Relu", list(inputs))
        return emitter.emit("Max", [inputs[0], emit_constant(emitter, 0, kind.dtype)])


@register
class Sigmoid(_Unary):
    """1 / (1 + exp(-x))."""

    name = "sigmoid"
    onnx = ("Sigmoid",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return activate("sigmoid", inputs[0])

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return 1.0


@register
class HardSigmoid(_Unary):
    """max(0, min(1, alpha x + beta)): a sigmoid of three straight lines."""

    name = "hard_sigmoid"
    attrs = (
        Attr("alpha", "float", 0.2, samples=(0.2, 0.5)),
        Attr("beta", "float", 0.5, samples=(0.25, 0.5)),
    )
    onnx = ("HardSigmoid",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return np.clip(float_of(attrs, "alpha") * inputs[0] + float_of(attrs, "beta"), 0.0, 1.0)

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return 1.0

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        attrs = {"alpha": attr_float(node, "alpha", 0.2), "beta": attr_float(node, "beta", 0.5)}
        return Mapped(self.name, (node.inputs[0],), attrs)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        alpha, beta = float_of(attrs, "alpha"), float_of(attrs, "beta")
        return emitter.emit("HardSigmoid", list(inputs), alpha=alpha, beta=beta)


@register
class HardSwish(_Unary):
    """x max(0, min(1, x / 6 + 1 / 2))."""

    name = "hard_swish"
    onnx = ("HardSwish",)
    onnx_since = 14

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return inputs[0] * np.clip(inputs[0] / 6.0 + 0.5, 0.0, 1.0)

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return _HALF * sizes[0]

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        if emitter.opset >= self.onnx_since:
            return emitter.emit("HardSwish", list(inputs))
        gate = emitter.emit("HardSigmoid", list(inputs), alpha=1 / 6, beta=0.5)
        return emitter.emit("Mul", [inputs[0], *gate])


@register
class Tanh(_Unary):
    """Hyperbolic tangent."""

    name = "tanh"
    onnx = ("Tanh",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return activate("tanh", inputs[0])

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return min(sizes[0], 1.0)


@register
class Exp(_Unary):
    """e to the x."""

    name = "exp"
    onnx = ("Exp",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        with np.errstate(over="ignore"):
            return np.exp(inputs[0])

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return math.exp(min(sizes[0], 20.0))


@register
class Sqrt(_Unary):
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
class Erf(_Unary):
    """The error function."""

    name = "erf"
    onnx = ("Erf",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return erf(inputs[0])

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return min(sizes[0], 1.0)


@register
class Neg(_Unary):
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
class Abs(_Unary):
    """|x|."""

    name = "abs"
    is_exact = True
    keeps_size = True
    onnx = ("Abs",)
    accepts = NUMBER_DTYPES

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return np.abs(inputs[0])


@register
class Log(_Unary):
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
class Reciprocal(_Unary):
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
class Gelu(_Unary):
    """x Phi(x), with the normal distribution's Phi exact or by its tanh approximation."""

    name = "gelu"
    attrs = (Attr("approximate", "str", "none", ("none", "tanh")),)
    onnx = ("Gelu",)
    onnx_since = 20

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        x = inputs[0]
        if str_of(attrs, "approximate") == "none":
            return 0.5 * x * (1.0 + erf(x / math.sqrt(2.0)))
        return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return _HALF * sizes[0]

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        attrs = {"approximate": attr_str(node, "approximate", "none")}
        return Mapped(self.name, (node.inputs[0],), attrs)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        approximate = str_of(attrs, "approximate")
        if emitter.opset >= self.onnx_since:
            return emitter.emit("Gelu", list(inputs), approximate=approximate)
        x, dtype = inputs[0], tensor(types[0], self.name).dtype

        def scaled(name: str, factor: float) -> str:
            return emitter.emit("Mul", [name, emit_constant(emitter, factor, dtype)])[0]

        if approximate == "none":
            inner = emitter.emit("Erf", [scaled(x, math.sqrt(0.5))])[0]
        else:
            cube = emitter.emit("Mul", [emitter.emit("Mul", [x, x])[0], x])[0]
            bent = emitter.emit("Add", [x, scaled(cube, 0.044715)])[0]
            inner = emitter.emit("Tanh", [scaled(bent, math.sqrt(2.0 / math.pi))])[0]
        gate = emitter.emit("Add", [inner, emit_constant(emitter, 1.0, dtype)])[0]
        return emitter.emit("Mul", [scaled(x, 0.5), gate])


@register
class Clip(_Unary):
    """min(max(x, min), max).

    ONNX's Clip without a bound has the type's largest finite number for it, so an infinite element does not
    pass; here, and in ONNX's Max and Min, an infinite bound is none.
    """

    name = "clip"
    attrs = (
        Attr("min", "float", -math.inf, samples=NUMBERS),
        Attr("max", "float", math.inf, samples=NUMBERS),
    )
    is_exact = True
    onnx = ("Clip", "Max", "Min")

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return np.minimum(np.maximum(inputs[0], float_of(attrs, "min")), float_of(attrs, "max"))

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        if all(math.isinf(float_of(attrs, bound)) for bound in ("min", "max")):
            return inputs[0]
        return super().evaluate_exact(inputs, types, attrs, field)

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        if node.op_type != "Clip":
            return self._read_extremum(node)
        largest = _largest(input_type(node, 0))
        if node.opset < 11:
            low, high = attr_float(node, "min", -largest), attr_float(node, "max", largest)
        else:
            low, high = constant_float(node, 1, -largest), constant_float(node, 2, largest)
        return Mapped(self.name, (node.inputs[0],), {"min": low, "max": high})

    def _read_extremum(self, node: OnnxNode) -> Mapped | None:
        """Read Max or Min of a tensor and one constant number."""
        if len(node.inputs) == 1:
            return Mapped("identity", node.inputs)
        for index, operand in ((1, 0), (0, 1)):
            value = node.constant(index) if len(node.inputs) == 2 else None
            if value is not None and value.size == 1:
                x = input_type(node, operand)
                if value.ndim > x.rank:  # would add dimensions
                    return None
                bound = "min" if node.op_type == "Max" else "max"
                number = constant_float(node, index, 0.0)
                return Mapped(self.name, (node.inputs[operand],), {bound: number})
        return None

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        kind = tensor(types[0], self.name)
        low, high = float_of(attrs, "min"), float_of(attrs, "max")

        def constant(bound: float) -> str:
            return emit_constant(emitter, bound, kind.dtype)

        match math.isinf(low), math.isinf(high):
            case True, True:
                return emitter.emit("Identity", list(inputs))
            case True, False:
                return emitter.emit("Min", [inputs[0], constant(high)])
            case False, True:
                return emitter.emit("Max", [inputs[0], constant(low)])
        largest = _largest(kind)
        names = ["" if abs(bound) == largest else constant(bound) for bound in (low, high)]
        return emitter.emit("Clip", [inputs[0], *(names if names[1] else names[:1])])


def _largest(kind: TensorType) -> float:
    """Return the largest finite number of a type; infinity for one that has no infinity."""
    return FLOAT_FORMATS[kind.dtype].largest if kind.dtype in FLOAT_FORMATS else math.inf


@register
class Smul(_Unary):
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
