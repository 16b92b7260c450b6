"""Normalization by the root of the mean square, as language models have it."""

from __future__ import annotations

from typing import Any

import numpy as np

from relational_tensat.tensor.field import Field
from relational_tensat.tensor.operators.attributes import float_of, int_of
from relational_tensat.tensor.operators.base import Types, Values, tensor
from relational_tensat.tensor.operators.norm import LayerNorm
from relational_tensat.tensor.operators.onnx_form import Mapped, Names, OnnxEmitter, OnnxNode
from relational_tensat.tensor.operators.onnx_read import attr_float, attr_int
from relational_tensat.tensor.operators.onnx_write import emit_constant, emit_reduce
from relational_tensat.tensor.operators.registry import register
from relational_tensat.tensor.types import Attrs, ValueType, tensors_of


@register
class RmsNorm(LayerNorm):
    """scale x / sqrt(mean of x² + epsilon): a layer norm that neither centres nor shifts.

    The mean is over the axes from ``axis`` on; scale has their shape.
    """

    name = "rms_norm"
    arity = (2, 2)
    onnx = ("RMSNormalization",)
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
