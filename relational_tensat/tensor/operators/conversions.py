"""Operators of one operand that convert its elements, or give it back as it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor.field import Field
from relational_tensat.tensor.operators.attributes import Attr, str_of
from relational_tensat.tensor.operators.base import Operator, Types, Values, tensor
from relational_tensat.tensor.operators.onnx_form import (
    ONNX_DTYPES,
    Mapped,
    Names,
    OnnxEmitter,
    OnnxNode,
    attr_str,
    check_one_output,
    constant_float,
    dtype_of_onnx,
)
from relational_tensat.tensor.operators.registry import register
from relational_tensat.tensor.operators.samples import Hints, PartialApplication
from relational_tensat.tensor.operators.traits import Use
from relational_tensat.tensor.types import (
    DTYPE_BYTES,
    FLOAT_DTYPES,
    Attrs,
    TensorType,
    ValueType,
    numpy_dtype,
)


@register
class Cast(Operator):
    """Conversion to another element type; between floats it changes no value.

    Floats become integers by dropping the fraction, and bool by comparing with 0.
    """

    name = "cast"
    uses = (Use.MOVED,)
    is_exact = True
    keeps_size = True
    attrs = (Attr("dtype", "dtype", choices=tuple(DTYPE_BYTES)),)
    onnx = ("Cast",)

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        kind = tensor(inputs[0], self.name)
        if kind.dtype not in DTYPE_BYTES:
            raise ShapeError(f"cast takes numbers or bool, not {kind.dtype}")
        return TensorType(str_of(attrs, "dtype"), kind.shape)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        dtype = str_of(attrs, "dtype")
        numpy_type = np.dtype("float64") if dtype in FLOAT_DTYPES else numpy_dtype(dtype)
        with np.errstate(invalid="ignore"):  # out of range: undefined in ONNX, too
            return np.asarray(inputs[0]).astype(numpy_type)

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        """Exact into floats; from floats, a random function with few values."""
        dtype = str_of(attrs, "dtype")
        if dtype in FLOAT_DTYPES:
            return field.reduced(inputs[0])
        rounded = field.function(f"cast {dtype}", inputs[0])
        return (rounded % 2).astype(bool) if dtype == "bool" else rounded % 11

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        return 0

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        """The result's shape, in any element type."""
        target = partial.target
        if target is None or hints.choices.below(2):
            return super().suggest_operand(index, partial, hints)
        return hints.type(target)

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

    kernel = "nothing"
    may_be_view = True
    is_called = True
    uses = (Use.MOVED,)
    is_exact = True
    keeps_size = True

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
