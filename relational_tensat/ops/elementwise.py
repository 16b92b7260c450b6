"""Element-wise operators of one operand, and those that only rename or convert it."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from relational_tensat.errors import ShapeError
from relational_tensat.graph.ir import Attrs
from relational_tensat.graph.types import (
    DTYPE_BYTES,
    FLOAT_DTYPES,
    TensorType,
    ValueType,
    numpy_dtype,
)
from relational_tensat.ops.attributes import float_of, str_of
from relational_tensat.ops.base import (
    Attr,
    Mapped,
    Names,
    OnnxEmitter,
    OnnxNode,
    Operator,
    Types,
    Values,
    activate,
    register,
    tensor,
)
from relational_tensat.ops.erf import erf
from relational_tensat.ops.onnx_read import (
    attr_float,
    attr_str,
    check_one_output,
    constant_float,
    input_type,
)
from relational_tensat.ops.onnx_write import ONNX_DTYPES, dtype_of_onnx, emit_constant
from relational_tensat.ops.shapes import NUMBER_DTYPES, SIGNED_DTYPES, one_dtype


class _Unary(Operator):
    """A function of each element; the result has the operand's type."""

    #: The element types that it computes with.
    accepts: ClassVar[frozenset[str]] = FLOAT_DTYPES

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        kind = tensor(inputs[0], self.name)
        one_dtype(self.name, [kind], self.accepts)
        return kind

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        return Mapped(self.name, (node.inputs[0],))

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        return emitter.emit(self.onnx[0], list(inputs))


@register
class Relu(_Unary):
    """max(x, 0)."""

    name = "relu"
    onnx = ("Relu",)
    accepts = NUMBER_DTYPES

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return activate("relu", inputs[0])

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        kind = tensor(types[0], self.name)
        if kind.is_float or emitter.opset >= 14:
            return emitter.emit("Relu", list(inputs))
        return emitter.emit("Max", [inputs[0], emit_constant(emitter, 0, kind.dtype)])


@register
class Sigmoid(_Unary):
    """1 / (1 + exp(-x))."""

    name = "sigmoid"
    onnx = ("Sigmoid",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return activate("sigmoid", inputs[0])


@register
class Tanh(_Unary):
    """Hyperbolic tangent."""

    name = "tanh"
    onnx = ("Tanh",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return activate("tanh", inputs[0])


@register
class Exp(_Unary):
    """e to the x."""

    name = "exp"
    onnx = ("Exp",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        with np.errstate(over="ignore"):
            return np.exp(inputs[0])


@register
class Sqrt(_Unary):
    """Square root; NaN below 0."""

    name = "sqrt"
    onnx = ("Sqrt",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        with np.errstate(invalid="ignore"):
            return np.sqrt(inputs[0])


@register
class Erf(_Unary):
    """The error function."""

    name = "erf"
    onnx = ("Erf",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return erf(inputs[0])


@register
class Neg(_Unary):
    """-x."""

    name = "neg"
    onnx = ("Neg",)
    accepts = SIGNED_DTYPES

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return np.negative(inputs[0])


@register
class Abs(_Unary):
    """|x|."""

    name = "abs"
    onnx = ("Abs",)
    accepts = NUMBER_DTYPES

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return np.abs(inputs[0])


@register
class Log(_Unary):
    """Natural logarithm; -infinity at 0, NaN below."""

    name = "log"
    onnx = ("Log",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(inputs[0])


@register
class Reciprocal(_Unary):
    """1 / x."""

    name = "reciprocal"
    onnx = ("Reciprocal",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        with np.errstate(divide="ignore"):
            return 1.0 / inputs[0]


@register
class Gelu(_Unary):
    """x Phi(x), with the normal distribution's Phi exact or by its tanh approximation."""

    name = "gelu"
    attrs = (Attr("approximate", "str", "none", ("none", "tanh")),)
    onnx = ("Gelu",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        x = inputs[0]
        if str_of(attrs, "approximate") == "none":
            return 0.5 * x * (1.0 + erf(x / math.sqrt(2.0)))
        return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        attrs = {"approximate": attr_str(node, "approximate", "none")}
        return Mapped(self.name, (node.inputs[0],), attrs)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        approximate = str_of(attrs, "approximate")
        if emitter.opset >= 20:
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
    """min(max(x, min), max)."""

    name = "clip"
    attrs = (Attr("min", "float", -math.inf), Attr("max", "float", math.inf))
    onnx = ("Clip", "Max", "Min")

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return np.minimum(np.maximum(inputs[0], float_of(attrs, "min")), float_of(attrs, "max"))

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        if node.op_type != "Clip":
            return self._read_extremum(node)
        if node.opset < 11:
            low, high = attr_float(node, "min", -math.inf), attr_float(node, "max", math.inf)
        else:
            low, high = constant_float(node, 1, -math.inf), constant_float(node, 2, math.inf)
        return Mapped(self.name, (node.inputs[0],), {"min": low, "max": high})

    def _read_extremum(self, node: OnnxNode) -> Mapped | None:
        """Read Max or Min of a tensor and one constant number."""
        if len(node.inputs) == 1:
            return Mapped("identity", node.inputs)
        for index, other in ((1, 0), (0, 1)):
            value = node.constant(index) if len(node.inputs) == 2 else None
            if value is not None and value.size == 1:
                x = input_type(node, other)
                if value.ndim > x.rank:  # would add dimensions
                    return None
                bound = "min" if node.op_type == "Max" else "max"
                number = constant_float(node, index, 0.0)
                return Mapped(self.name, (node.inputs[other],), {bound: number})
        return None

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        dtype = tensor(types[0], self.name).dtype
        bounds = [float_of(attrs, "min"), float_of(attrs, "max")]
        names = ["" if math.isinf(b) else emit_constant(emitter, b, dtype) for b in bounds]
        if not any(names):
            return emitter.emit("Identity", list(inputs))
        return emitter.emit("Clip", [inputs[0], *(names if names[1] else names[:1])])


@register
class Smul(_Unary):
    """A number times a tensor."""

    name = "smul"
    attrs = (Attr("value", "float"),)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return inputs[0] * float_of(attrs, "value")

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        dtype = tensor(types[0], self.name).dtype
        factor = emit_constant(emitter, float_of(attrs, "value"), dtype)
        return emitter.emit("Mul", [inputs[0], factor])


@register
class Cast(Operator):
    """Conversion to another element type; between floats it changes no value.

    Floats become integers by dropping the fraction, and bool by comparing with 0.
    """

    name = "cast"
    attrs = (Attr("dtype", "dtype", choices=tuple(DTYPE_BYTES)),)
    onnx = ("Cast",)

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        kind = tensor(inputs[0], self.name)
        if kind.dtype not in DTYPE_BYTES:
            raise ShapeError(f"cast takes numbers or bool, not {kind.dtype}")
        return TensorType(str_of(attrs, "dtype"), kind.shape)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        dtype = str_of(attrs, "dtype")
        kept = np.dtype("float64") if dtype in FLOAT_DTYPES else numpy_dtype(dtype)
        with np.errstate(invalid="ignore"):  # out of range: undefined in ONNX, too
            return np.asarray(inputs[0]).astype(kept)

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        return 0

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        to = node.attributes["to"]
        if isinstance(to, str | bytes):  # version 1 names it: FLOAT, INT64
            names = {"FLOAT": "float32", "DOUBLE": "float64"}
            text = attr_str(node, "to", "").upper()
            dtype = names.get(text, text.lower())
        else:
            dtype = dtype_of_onnx(int(to))
        return Mapped(self.name, (node.inputs[0],), {"dtype": dtype})

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        return emitter.emit("Cast", list(inputs), to=ONNX_DTYPES[str_of(attrs, "dtype")])


class _Same(Operator):
    """Gives back its operand."""

    free = True

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        return tensor(inputs[0], self.name)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return inputs[0]

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        return 0

    def bytes_moved(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        return 0

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        check_one_output(node)
        return Mapped(self.name, (node.inputs[0],))

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        return emitter.emit(self.onnx[0], list(inputs))


@register
class Identity(_Same):
    """The operand itself."""

    name = "identity"
    onnx = ("Identity",)


@register
class Dropout(_Same):
    """Dropout at inference: the operand itself."""

    name = "dropout"
    onnx = ("Dropout",)

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        # Before version 12 an attribute (is_test) or nothing at all tells training from inference;
        # models are optimized for inference, so only an explicit training_mode keeps it opaque.
        if node.opset >= 12 and constant_float(node, 2, 0.0) != 0.0:
            return None
        return super().read_onnx(node)
