"""Normalizations: by stored statistics, over the last axes, by the root of the mean square, and softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor.field import Field
from relational_tensat.tensor.operators.attributes import Attr, float_of, int_of
from relational_tensat.tensor.operators.base import Operator, Types, Values, tensor
from relational_tensat.tensor.operators.onnx_form import (
    Mapped,
    Names,
    OnnxEmitter,
    OnnxNode,
    attr_float,
    attr_int,
    check_one_output,
    emit_constant,
    emit_reduce,
    has_input,
    input_type,
)
from relational_tensat.tensor.operators.registry import register
from relational_tensat.tensor.operators.samples import ADDED_SCALE, Hints, PartialApplication
from relational_tensat.tensor.operators.shapes import check_axis, front_axis, one_dtype, operands
from relational_tensat.tensor.operators.traits import Family, Use
from relational_tensat.tensor.operators.work_steps import rows_of
from relational_tensat.tensor.types import (
    FLOAT_DTYPES,
    Attrs,
    AttrValue,
    TensorType,
    ValueType,
    tensors_of,
)

#: Values of epsilon for random applications: one that matters, and a usual one.
EPSILONS = (0.125, 1e-5)


@register
class BatchNorm(Operator):
    """scale (x - mean) / sqrt(var + epsilon) + bias, per channel.

    x ``[N, C, ..]`` of rank 2 to 5; scale, bias, mean and var ``[C]``, in this order.
    """

    name = "batch_norm"
    computes = Family.NORMALIZATION
    uses = (Use.VALUE, Use.POSITIVE, Use.ADDED, Use.ADDED, Use.POSITIVE)
    arity = (5, 5)
    attrs = (Attr("epsilon", "float", samples=EPSILONS, timed_as=1e-5),)
    onnx = ("BatchNormalization",)
    rooted_operands = (4,)

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        x, *vectors = kinds = operands(self.name, inputs)
        one_dtype(self.name, kinds, FLOAT_DTYPES)
        if not 2 <= x.rank <= 5:
            raise ShapeError(f"batch_norm takes [N, C, up to 3 more dimensions], not {x}")
        for label, kind in zip(("scale", "bias", "mean", "var"), vectors, strict=True):
            if kind.shape != x.shape[1:2]:
                raise ShapeError(f"batch_norm: {label} {kind}, expected [{x.shape[1]}]")
        return x

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        x, *vectors = inputs
        per_channel = (-1, *(1,) * (x.ndim - 2))
        scale, bias, mean, var = (vector.reshape(per_channel) for vector in vectors)
        return (x - mean) * (scale / np.sqrt(var + float_of(attrs, "epsilon"))) + bias

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        x, *vectors = inputs
        per_channel = (-1, *(1,) * (x.ndim - 2))
        scale, bias, mean, var = (vector.reshape(per_channel) for vector in vectors)
        shifted = field.reduced(var + field.constant(float_of(attrs, "epsilon")))
        factor = field.multiply(scale, field.root_inverse(shifted))
        return field.reduced(field.multiply(field.reduced(x - mean), factor) + bias)

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return sizes[0] + 2 * ADDED_SCALE

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        target, shapes = partial.target, partial.shapes
        if index > 0:
            return hints.type(shapes[0][1:2]) if shapes[0] else None
        vectors = [shape for shape in shapes[1:] if shape]
        if vectors:
            return hints.image_type(None, vectors[0][0])
        return hints.type(target) if target and len(target) > 1 else None

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """Two per element: the statistics fold into one factor and one summand per channel."""
        return 2 * sum(part.size for part in tensors_of(output))

    def weight_operands(self, inputs: Types) -> tuple[int, ...]:
        """All but x."""
        return (1, 2, 3, 4)

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        check_one_output(node)
        if attr_int(node, "training_mode", 0) or not attr_int(node, "spatial", 1):
            return None
        return Mapped(self.name, node.inputs[:5], {"epsilon": attr_float(node, "epsilon", 1e-5)})

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        epsilon = float_of(attrs, "epsilon")
        return emitter.emit("BatchNormalization", list(inputs), epsilon=epsilon)


@register
class LayerNorm(Operator):
    """scale (x - mean) / sqrt(variance + epsilon) + bias, with statistics over the last axes.

    These are the axes from ``axis`` on; scale and bias have their shape.
    """

    name = "layer_norm"
    computes = Family.NORMALIZATION
    uses = (Use.VALUE, Use.POSITIVE, Use.ADDED)
    arity = (2, 3)
    attrs = (Attr("axis", "int"), Attr("epsilon", "float", samples=EPSILONS, timed_as=1e-5))
    onnx: ClassVar[tuple[str, ...]] = ("LayerNormalization",)
    onnx_since = 17

    def canonical(self, inputs: Types, attrs: Attrs) -> dict[str, AttrValue]:
        return _front_axis(self, inputs, attrs)

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        x, *affine = kinds = operands(self.name, inputs)
        one_dtype(self.name, kinds, FLOAT_DTYPES)
        shape = x.shape[check_axis(self.name, int_of(attrs, "axis"), x.rank) :]
        for label, kind in zip(("scale", "bias"), affine, strict=False):
            if kind.shape != shape:
                raise ShapeError(f"{self.name}: {label} {kind}, expected {list(shape)}")
        return x

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        x, scale, *bias = inputs
        axes = tuple(range(int_of(attrs, "axis"), x.ndim))
        centred = x - x.mean(axis=axes, keepdims=True)
        variance = (centred * centred).mean(axis=axes, keepdims=True)
        result = scale * (centred / np.sqrt(variance + float_of(attrs, "epsilon")))
        return result + bias[0] if bias else result

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        x, scale, *bias = inputs
        axes = tuple(range(int_of(attrs, "axis"), x.ndim))
        centred = field.reduced(x - field.mean(x, axes))
        variance = field.mean(field.multiply(centred, centred), axes)
        shifted = field.reduced(variance + field.constant(float_of(attrs, "epsilon")))
        result = field.multiply(scale, field.multiply(centred, field.root_inverse(shifted)))
        return field.reduced(result + bias[0]) if bias else result

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return 1.0

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        """A tensor to be normalized over its last axes, or a scale or bias of the shape of these."""
        target, x = partial.target, partial.shapes[0]
        vectors = [shape for shape in partial.shapes[1:] if shape is not None]
        if index > 0 and (vectors or x):
            x = x or ()
            return hints.type(vectors[0] if vectors else x[hints.choices.below(len(x)) :])
        if target is None and vectors:
            return hints.type((hints.size(), *vectors[0]))
        return hints.type(target) if target else None

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """Per element: mean 1, centring 1, variance 2, division 1, scale 1, bias 1."""
        return (4 + len(inputs)) * sum(part.size for part in tensors_of(output))

    def works(self, inputs: Types, output: ValueType, attrs: Attrs) -> list[tuple[str, int]]:
        """Itself, and the rows that it normalizes."""
        row, _ = rows_of(tensor(inputs[0], self.name).shape, int_of(attrs, "axis"))
        return [*super().works(inputs, output, attrs), row]

    def weight_operands(self, inputs: Types) -> tuple[int, ...]:
        """Scale and bias (a root-mean-square norm has no bias)."""
        return tuple(range(1, len(inputs)))

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        check_one_output(node)
        attrs = {
            "axis": attr_int(node, "axis", -1),
            "epsilon": attr_float(node, "epsilon", 1e-5),
        }
        return Mapped(self.name, node.inputs[: 3 if has_input(node, 2) else 2], attrs)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        axis, epsilon = int_of(attrs, "axis"), float_of(attrs, "epsilon")
        if emitter.opset >= self.onnx_since:
            return emitter.emit("LayerNormalization", list(inputs), axis=axis, epsilon=epsilon)
        x, scale, *bias = inputs
        kind = tensor(types[0], self.name)
        axes = list(range(axis, kind.rank))
        mean = emit_reduce(emitter, "ReduceMean", x, axes, keepdims=True)[0]
        centred = emitter.emit("Sub", [x, mean])[0]
        square = emitter.emit("Mul", [centred, centred])[0]
        variance = emit_reduce(emitter, "ReduceMean", square, axes, keepdims=True)[0]
        shifted = emitter.emit("Add", [variance, emit_constant(emitter, epsilon, kind.dtype)])[0]
        normal = emitter.emit("Div", [centred, emitter.emit("Sqrt", [shifted])[0]])[0]
        result = emitter.emit("Mul", [normal, scale])
        return emitter.emit("Add", [result[0], *bias]) if bias else result


@register
class Softmax(Operator):
    """exp(x) over its sum along one axis."""

    name = "softmax"
    uses = (Use.SCORE,)
    computes = Family.NORMALIZATION
    attrs = (Attr("axis", "int"),)
    onnx = ("Softmax",)

    def canonical(self, inputs: Types, attrs: Attrs) -> dict[str, AttrValue]:
        return _front_axis(self, inputs, attrs)

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        x = tensor(inputs[0], self.name)
        one_dtype(self.name, [x], FLOAT_DTYPES)
        check_axis(self.name, int_of(attrs, "axis"), x.rank)
        return x

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        x, axis = inputs[0], int_of(attrs, "axis")
        powers = np.exp(x - x.max(axis=axis, keepdims=True))
        return powers / powers.sum(axis=axis, keepdims=True)

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        powers = field.function("exp", inputs[0])
        total = field.sum(powers, [int_of(attrs, "axis")])
        return field.multiply(powers, field.inverse(total))

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return 1.0

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """Per element: maximum, difference, exponential, sum and quotient."""
        return 5 * sum(part.size for part in tensors_of(output))

    def works(self, inputs: Types, output: ValueType, attrs: Attrs) -> list[tuple[str, int]]:
        """Itself, and its rows, as along the last axis."""
        x, axis = tensor(inputs[0], self.name), int_of(attrs, "axis")
        length = x.shape[axis]
        rows = rows_of((x.size // max(1, length), length), 1)
        return [*super().works(inputs, output, attrs), *rows]

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        if node.opset >= 13:
            return Mapped(self.name, (node.inputs[0],), {"axis": attr_int(node, "axis", -1)})
        # Before version 13 all axes from ``axis`` (default 1) on count as one.
        shape = input_type(node, 0).shape
        first = attr_int(node, "axis", 1)
        first = len(shape) if first == len(shape) else front_axis(self.name, first, len(shape))
        long = [axis for axis in range(first, len(shape)) if shape[axis] > 1]
        if len(long) <= 1 and first < len(shape):
            return Mapped(self.name, (node.inputs[0],), {"axis": long[0] if long else first})
        flat = (math.prod(shape[:first]), math.prod(shape[first:]))
        matrix = Mapped("reshape", (node.inputs[0],), {"shape": flat})
        return Mapped("reshape", (Mapped(self.name, (matrix,), {"axis": 1}),), {"shape": shape})

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        return emitter.emit("Softmax", list(inputs), axis=int_of(attrs, "axis"))


def _front_axis(operator: Operator, inputs: Types, attrs: Attrs) -> dict[str, AttrValue]:
    """Normalize, and count the attribute ``axis`` from the front."""
    result = operator.normalize(attrs)
    rank = tensor(inputs[0], operator.name).rank
    return {**result, "axis": front_axis(operator.name, int_of(result, "axis"), rank)}


@register
class RmsNorm(LayerNorm):
    """scale x / sqrt(mean of x² + epsilon): a layer norm that neither centres nor shifts.

    The mean is over the axes from ``axis`` on; scale has their shape.
    """

    name = "rms_norm"
    arity = (2, 2)
    onnx = ("RMSNormalization", "SimplifiedLayerNormalization")  # onnxruntime's, in each version
    onnx_since = 23

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        x, scale = inputs
        axes = tuple(range(int_of(attrs, "axis"), x.ndim))
        mean_square = (x * x).mean(axis=axes, keepdims=True)
        return scale * (x / np.sqrt(mean_square + float_of(attrs, "epsilon")))

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        x, scale = inputs
        axes = tuple(range(int_of(attrs, "axis"), x.ndim))
        mean_square = field.mean(field.multiply(x, x), axes)
        shifted = field.reduced(mean_square + field.constant(float_of(attrs, "epsilon")))
        return field.multiply(scale, field.multiply(x, field.root_inverse(shifted)))

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """Per element: mean square 2, division 1, scale 1."""
        return 4 * sum(part.size for part in tensors_of(output))

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        attrs = {
            "axis": attr_int(node, "axis", -1),
            "epsilon": attr_float(node, "epsilon", 1e-5),
        }
        return Mapped(self.name, node.inputs[:2], attrs)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        axis, epsilon = int_of(attrs, "axis"), float_of(attrs, "epsilon")
        if emitter.opset >= self.onnx_since:
            return emitter.emit("RMSNormalization", list(inputs), axis=axis, epsilon=epsilon)
        x, scale = inputs
        kind = tensor(types[0], self.name)
        square = emitter.emit("Mul", [x, x])[0]
        axes = list(range(axis, kind.rank))
        mean = emit_reduce(emitter, "ReduceMean", square, axes, keepdims=True)[0]
        shifted = emitter.emit("Add", [mean, emit_constant(emitter, epsilon, kind.dtype)])[0]
        normal = emitter.emit("Div", [x, emitter.emit("Sqrt", [shifted])[0]])[0]
        return emitter.emit("Mul", [normal, scale])
