"""Normalization of each image by itself, in groups of channels, or of each channel by itself.

ONNX has InstanceNormalization for the latter, in all versions. GroupNormalization came later, and
onnxruntime has no kernel for it: it runs the operators of its definition.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor.field import Field
from relational_tensat.tensor.operators.attributes import Attr, float_of, int_of
from relational_tensat.tensor.operators.base import Operator, Types, Values, tensor
from relational_tensat.tensor.operators.norm import EPSILONS
from relational_tensat.tensor.operators.onnx_form import (
    Mapped,
    Names,
    OnnxEmitter,
    OnnxNode,
    attr_float,
    attr_int,
    check_one_output,
    emit_constant,
    emit_ints,
    input_type,
)
from relational_tensat.tensor.operators.registry import register
from relational_tensat.tensor.operators.samples import Hints, PartialApplication
from relational_tensat.tensor.operators.shapes import one_dtype, operands
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

#: The first version of ONNX's GroupNormalization with a scale for each channel; before, for each group.
_FOR_EACH_CHANNEL = 21


@register
class GroupNorm(Operator):
    """scale (x - mean) / sqrt(variance + epsilon) + bias, with statistics over groups of channels.

    x ``[N, C, ..]`` of rank 3 or more; scale and bias ``[C]``. C is a multiple of ``groups``.
    """

    name = "group_norm"
    computes = Family.NORMALIZATION
    uses = (Use.VALUE, Use.POSITIVE, Use.ADDED)
    arity = (3, 3)
    attrs = (Attr("groups", "int"), Attr("epsilon", "float", samples=EPSILONS, timed_as=1e-5))
    onnx = ("InstanceNormalization", "GroupNormalization")

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        x, *affine = kinds = operands(self.name, inputs)
        one_dtype(self.name, kinds, FLOAT_DTYPES)
        groups = int_of(attrs, "groups")
        if x.rank < 3 or groups < 1 or x.shape[1] % groups:
            raise ShapeError(
                f"group_norm: {groups} groups, expected [N, C, …] with C a multiple, not {x}"
            )
        for label, kind in zip(("scale", "bias"), affine, strict=True):
            if kind.shape != x.shape[1:2]:
                raise ShapeError(f"group_norm: {label} {kind}, expected [{x.shape[1]}]")
        return x

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        x, scale, bias = inputs
        rows = x.reshape(x.shape[0], int_of(attrs, "groups"), -1)
        centred = rows - rows.mean(axis=2, keepdims=True)
        variance = (centred * centred).mean(axis=2, keepdims=True)
        normal = centred / np.sqrt(variance + float_of(attrs, "epsilon"))
        per_channel = (-1, *(1,) * (x.ndim - 2))
        return normal.reshape(x.shape) * scale.reshape(per_channel) + bias.reshape(per_channel)

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        x, scale, bias = inputs
        rows = x.reshape(x.shape[0], int_of(attrs, "groups"), -1)
        centred = field.reduced(rows - field.mean(rows, (2,)))
        variance = field.mean(field.multiply(centred, centred), (2,))
        shifted = field.reduced(variance + field.constant(float_of(attrs, "epsilon")))
        normal = field.multiply(centred, field.root_inverse(shifted)).reshape(x.shape)
        per_channel = (-1, *(1,) * (x.ndim - 2))
        scaled = field.multiply(normal, scale.reshape(per_channel))
        return field.reduced(scaled + bias.reshape(per_channel))

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return 1.0

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        target, shapes = partial.target, partial.shapes
        if index > 0:
            return hints.type(shapes[0][1:2]) if shapes[0] else None
        vectors = [shape for shape in shapes[1:] if shape]
        if vectors:
            return hints.image_type(None, vectors[0][0])
        return hints.type(target) if target and len(target) > 2 else None

    def suggest_attribute(self, attr: Attr, partial: PartialApplication, hints: Hints) -> AttrValue:
        """One group, two, or as many as there are channels."""
        x = partial.shapes[0]
        channels = x[1] if x and len(x) > 1 else 1
        return (1, math.gcd(channels, 2), channels)[hints.choices.below(3)]

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """Per element: mean 1, centring 1, variance 2, division 1, scale 1, bias 1."""
        return 7 * sum(part.size for part in tensors_of(output))

    def works(self, inputs: Types, output: ValueType, attrs: Attrs) -> list[tuple[str, int]]:
        """Itself, and the rows that it normalizes."""
        x, groups = tensor(inputs[0], self.name), int_of(attrs, "groups")
        count = max(1, x.shape[0] * groups)
        row, _ = rows_of((count, x.size // count), 1)
        return [*super().works(inputs, output, attrs), row]

    def weight_operands(self, inputs: Types) -> tuple[int, ...]:
        """Scale and bias."""
        return (1, 2)

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        check_one_output(node)
        x, (scale, bias) = input_type(node, 0), node.inputs[1:3]
        epsilon = attr_float(node, "epsilon", 1e-5)
        if node.op_type == "InstanceNormalization":
            attrs: Attrs = {"groups": x.shape[1], "epsilon": epsilon}
            return Mapped(self.name, node.inputs[:3], attrs)
        groups = attr_int(node, "num_groups", 1)
        attrs = {"groups": groups, "epsilon": epsilon}
        if node.opset >= _FOR_EACH_CHANNEL:
            return Mapped(self.name, node.inputs[:3], attrs)
        for_channels = (_for_each_channel(name, groups, x.shape[1]) for name in (scale, bias))
        return Mapped(self.name, (node.inputs[0], *for_channels), attrs)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        x, epsilon = tensor(types[0], self.name), float_of(attrs, "epsilon")
        groups = int_of(attrs, "groups")
        if groups == x.shape[1]:
            return emitter.emit("InstanceNormalization", list(inputs), epsilon=epsilon)
        if emitter.opset >= _FOR_EACH_CHANNEL:
            return emitter.emit(
                "GroupNormalization", list(inputs), num_groups=groups, epsilon=epsilon
            )
        rows = emitter.emit("Reshape", [inputs[0], emit_ints(emitter, (0, groups, -1))])[0]
        one, zero = (emit_constant(emitter, np.full(groups, n), x.dtype) for n in (1.0, 0.0))
        normal = emitter.emit("InstanceNormalization", [rows, one, zero], epsilon=epsilon)[0]
        normal = emitter.emit("Reshape", [normal, emit_ints(emitter, x.shape)])[0]
        per_channel = emit_ints(emitter, (x.shape[1], *(1,) * (x.rank - 2)))
        scale, bias = (emitter.emit("Reshape", [name, per_channel])[0] for name in inputs[1:])
        return emitter.emit("Add", [emitter.emit("Mul", [normal, scale])[0], bias])


def _for_each_channel(name: str, groups: int, channels: int) -> Mapped:
    """Return what has an element for each group with one for each channel."""
    column = Mapped("reshape", (name,), {"shape": (groups, 1)})
    wide = Mapped("expand", (column,), {"shape": (groups, channels // groups)})
    return Mapped("reshape", (wide,), {"shape": (channels,)})
