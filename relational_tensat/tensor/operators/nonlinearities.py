"""Element-wise functions that networks put between their layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relational_tensat.tensor.field import Field
from relational_tensat.tensor.floats import FLOAT_FORMATS, erf
from relational_tensat.tensor.operators.attributes import Attr, float_of, str_of
from relational_tensat.tensor.operators.base import Types, Values, tensor
from relational_tensat.tensor.operators.elementwise import Unary
from relational_tensat.tensor.operators.onnx_form import (
    Mapped,
    Names,
    OnnxEmitter,
    OnnxNode,
    attr_float,
    attr_str,
    constant_float,
    emit_constant,
    input_type,
)
from relational_tensat.tensor.operators.registry import register
from relational_tensat.tensor.operators.samples import NUMBERS
from relational_tensat.tensor.operators.shapes import NUMBER_DTYPES, SIGNED_DTYPES
from relational_tensat.tensor.operators.traits import activate
from relational_tensat.tensor.types import Attrs, TensorType, ValueType

#: The root mean square left if half of the elements become 0.
_HALF = math.sqrt(0.5)


@register
class Relu(Unary):
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
class LeakyRelu(Unary):
    """x, below 0 alpha x."""

    name = "leaky_relu"
    attrs = (Attr("alpha", "float", 0.01, samples=(0.01, 0.2)),)
    onnx = ("LeakyRelu",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return np.where(inputs[0] < 0.0, float_of(attrs, "alpha") * inputs[0], inputs[0])

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return math.sqrt((1.0 + float_of(attrs, "alpha") ** 2) / 2.0) * sizes[0]

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        return Mapped(self.name, (node.inputs[0],), {"alpha": attr_float(node, "alpha", 0.01)})

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        return emitter.emit("LeakyRelu", list(inputs), alpha=float_of(attrs, "alpha"))


@register
class Sigmoid(Unary):
    """1 / (1 + exp(-x))."""

    name = "sigmoid"
    onnx = ("Sigmoid",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return activate("sigmoid", inputs[0])

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return 1.0


@register
class HardSigmoid(Unary):
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
class HardSwish(Unary):
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
class Tanh(Unary):
    """Hyperbolic tangent."""

    name = "tanh"
    onnx = ("Tanh",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return activate("tanh", inputs[0])

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return min(sizes[0], 1.0)


@register
class Gelu(Unary):
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
class Clip(Unary):
    """min(max(x, min), max).

    ONNX's Clip without a bound has the type's largest finite number for it, so an infinite element does not
    pass. Here, and in ONNX's Max and Min, an infinite bound does nothing.
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
