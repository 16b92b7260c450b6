"""Between real numbers and the integers that stand for them: ONNX's QuantizeLinear and DequantizeLinear.

A scale and a zero point for the whole tensor are scalars (or have one element), those for each slice along
an axis are vectors. Operators with a scale for each block, 4-bit integers and 8-bit floats stay opaque.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor.field import Field
from relational_tensat.tensor.floats import integer_range, rounded
from relational_tensat.tensor.operators.attributes import Attr, bool_of, int_of, str_of
from relational_tensat.tensor.operators.base import Operator, Types, Values, tensor
from relational_tensat.tensor.operators.onnx_form import (
    ONNX_DTYPES,
    Mapped,
    Names,
    OnnxEmitter,
    OnnxNode,
    attr_int,
    dtype_of_onnx,
    has_input,
    input_type,
)
from relational_tensat.tensor.operators.registry import register
from relational_tensat.tensor.operators.samples import Hints, PartialApplication, shape_of
from relational_tensat.tensor.operators.shapes import front_axis, operands
from relational_tensat.tensor.operators.traits import Use
from relational_tensat.tensor.types import FLOAT_DTYPES, Attrs, AttrValue, TensorType, ValueType

#: The integers that QuantizeLinear gives; DequantizeLinear takes the sums of their products, too.
QUANTIZED_DTYPES = ("int8", "uint8", "int16", "uint16")
_DEQUANTIZED_DTYPES = (*QUANTIZED_DTYPES, "int32")
#: The axis along which ONNX takes a vector of scales where none is named.
_DEFAULT_AXIS = 1
#: QuantizeLinear names the type of its result, without a zero point, from this version on.
_OUTPUT_DTYPE_SINCE = 21


class _Linear(Operator):
    """The common part of both directions: operands x, scale and, if it is not 0, zero point."""

    arity = (2, 3)
    uses = (Use.VALUE, Use.STRUCTURE, Use.STRUCTURE)

    def canonical(self, inputs: Types, attrs: Attrs) -> dict[str, AttrValue]:
        """Axes count from the front; 0 where there is one scale only."""
        kinds, own = operands(self.name, inputs), self.normalize(attrs)
        axis = int_of(own, "axis")
        is_whole = kinds[1].size == 1
        axis = 0 if is_whole else front_axis(self.name, axis, kinds[0].rank)
        return {**own, "axis": axis}

    def _checked(self, inputs: Types, attrs: Attrs) -> tuple[TensorType, ...]:
        """Return the operands' types.

        Raises:
            ShapeError: scale or zero point do not fit the operand.
        """
        kinds = operands(self.name, inputs)
        x, scale = kinds[:2]
        if not scale.is_float:
            raise ShapeError(f"{self.name}: the scale is {scale}, expected floats")
        if scale.size == 1 and scale.rank <= 1:
            if int_of(attrs, "axis") != 0:
                raise ShapeError(f"{self.name}: axis {attrs['axis']} of one scale, expected 0")
        else:
            axis = front_axis(self.name, int_of(attrs, "axis"), x.rank)
            if axis != int_of(attrs, "axis") or scale.shape != (x.shape[axis],):
                raise ShapeError(f"{self.name}: the scale {scale} does not fit axis {axis} of {x}")
        if len(kinds) == 3 and kinds[2].shape != scale.shape:
            raise ShapeError(f"{self.name}: the zero point is {kinds[2]}, the scale {scale}")
        return kinds

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        x, scale = partial.operands[:2]
        if index == 0:
            shape = partial.target if partial.target is not None else hints.tensor_type().shape
            return TensorType(self._operand_dtype(partial, hints), shape)
        if index == 1:
            shape = shape_of(x) or ()
            axis = partial.attrs.get("axis")
            at = axis if isinstance(axis, int) and axis < len(shape) else None
            if at is None and shape:
                at = hints.choices.below(len(shape))
            whole = at is None or hints.choices.below(2) == 0
            return TensorType(self._scale_dtype(partial, hints), () if whole else (shape[at or 0],))
        dtype = self._zero_dtype(partial, hints)
        return TensorType(dtype, shape_of(scale) or ())

    def suggest_attribute(self, attr: Attr, partial: PartialApplication, hints: Hints) -> AttrValue:
        if attr.kind == "bool":
            return super().suggest_attribute(attr, partial, hints)
        if attr.name != "axis":
            kinds = partial.operands
            if len(kinds) == 3 and isinstance(kinds[2], TensorType):
                return kinds[2].dtype
            return hints.choices.choice(QUANTIZED_DTYPES)
        x, scale = partial.shapes[:2]
        if not x or not scale or scale == (1,):
            return 0
        fitting = [axis for axis, size in enumerate(x) if size == scale[0]]
        return hints.choices.choice(fitting or [0])

    def _operand_dtype(self, partial: PartialApplication, hints: Hints) -> str:
        raise NotImplementedError

    def _scale_dtype(self, partial: PartialApplication, hints: Hints) -> str:
        raise NotImplementedError

    def _zero_dtype(self, partial: PartialApplication, hints: Hints) -> str:
        raise NotImplementedError


@register
class Dequantize(_Linear):
    """(x - zero point) · scale: the real numbers that integers stand for; never computed beforehand.

    Attributes:
        axis: along which there is a scale for each slice; 0 where there is one scale.
        stored: whether x is known before inference. It changes nothing, but rules can see it: their work on
            stored integers costs nothing, and runtimes take only these with a scale for each slice.
    """

    name = "dequantize"
    attrs = (Attr("axis", "int", 0), Attr("stored", "bool", False))
    onnx = ("DequantizeLinear",)

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        kinds = self._checked(inputs, attrs)
        x = kinds[0]
        if x.dtype not in _DEQUANTIZED_DTYPES:
            raise ShapeError(f"dequantize takes integers of 8 to 32 bits, not {x}")
        if len(kinds) == 3 and kinds[2].dtype != x.dtype:
            raise ShapeError(f"dequantize: the zero point is {kinds[2]}, the operand {x}")
        return TensorType(kinds[1].dtype, x.shape)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        x, scale = np.asarray(inputs[0]).astype(np.float64), inputs[1]
        if len(inputs) == 3:
            x = x - _along(np.asarray(inputs[2]).astype(np.float64), x.ndim, attrs)
        return x * _along(scale, x.ndim, attrs)

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        x = np.asarray(inputs[0])
        if len(inputs) == 3:
            x = x - _along(inputs[2], x.ndim, attrs)
        return field.multiply(field.reduced(x), _along(inputs[1], x.ndim, attrs))

    def unpacks(self, attrs: Attrs) -> bool:
        return True

    def is_left_to_readers(self, attrs: Attrs) -> bool:
        return bool_of(attrs, "stored")

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return sizes[0] * sizes[1]

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        if attr_int(node, "block_size", 0):
            return None
        dtype = attr_int(node, "output_dtype", 0)
        if dtype and dtype_of_onnx(dtype) != input_type(node, 1).dtype:
            return None
        is_stored = node.constant(0) is not None
        return Mapped(self.name, _given(node), {"axis": _axis_of(node), "stored": is_stored})

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        return emitter.emit("DequantizeLinear", list(inputs), **_onnx_axis(types, attrs))

    def _operand_dtype(self, partial: PartialApplication, hints: Hints) -> str:
        zero = partial.operands[2] if len(partial.operands) == 3 else None
        if isinstance(zero, TensorType):
            return zero.dtype
        return hints.choices.choice(_DEQUANTIZED_DTYPES)

    def _scale_dtype(self, partial: PartialApplication, hints: Hints) -> str:
        result = partial.result
        if isinstance(result, TensorType) and result.is_float:
            return result.dtype
        return hints.dtype if hints.dtype in FLOAT_DTYPES else "float32"

    def _zero_dtype(self, partial: PartialApplication, hints: Hints) -> str:
        x = partial.operands[0]
        return x.dtype if isinstance(x, TensorType) else hints.choices.choice(_DEQUANTIZED_DTYPES)


@register
class Quantize(_Linear):
    """The integer nearest to x / scale (to an even one between two) + zero point, within its type."""

    name = "quantize"
    attrs = (
        Attr("axis", "int", 0),
        Attr("dtype", "dtype", "uint8", QUANTIZED_DTYPES),
    )
    onnx = ("QuantizeLinear",)
    rounds = True
    divides = True

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        kinds = self._checked(inputs, attrs)
        x, scale = kinds[:2]
        if not x.is_float or x.dtype != scale.dtype:
            raise ShapeError(f"quantize takes floats of the scale's type {scale.dtype}, not {x}")
        dtype = str_of(attrs, "dtype")
        if len(kinds) == 3 and kinds[2].dtype != dtype:
            raise ShapeError(f"quantize: the zero point is {kinds[2]}, expected {dtype}")
        return TensorType(dtype, x.shape)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return self._rounded(inputs, attrs, "float64")

    def evaluate_typed(self, inputs: Values, types: Types, attrs: Attrs) -> Any:
        """Compute the quotient in the operand's type, as every runtime does, and round that."""
        return self._rounded(inputs, attrs, tensor(types[0], self.name).dtype)

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        """A random function, with few values, of the quotient, plus the zero point."""
        x = np.asarray(inputs[0])
        dtype = str_of(attrs, "dtype")
        quotient = field.multiply(x, field.inverse(_along(inputs[1], x.ndim, attrs)))
        nearest = np.asarray(field.function(f"quantize {dtype}", quotient) % 11, np.int64)
        if len(inputs) == 3:
            nearest = nearest + _along(inputs[2], x.ndim, attrs)
        return nearest

    def is_defined(self, inputs: Values) -> bool:
        """A value that is no number has no integer, nor has a quotient by 0."""
        scale = np.asarray(inputs[1])
        return bool(np.isfinite(inputs[0]).all() and np.isfinite(scale).all() and scale.all())

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return sizes[0] / sizes[1]

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        if attr_int(node, "block_size", 0) or attr_int(node, "precision", 0):
            return None
        code = attr_int(node, "output_dtype", 0)
        dtype = dtype_of_onnx(code) if code else "uint8"
        if has_input(node, 2):
            dtype = input_type(node, 2).dtype
        return Mapped(self.name, _given(node), {"axis": _axis_of(node), "dtype": dtype})

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        dtype, named = str_of(attrs, "dtype"), _onnx_axis(types, attrs)
        inputs = list(inputs)
        if len(inputs) == 2 and dtype != "uint8":
            if emitter.opset >= _OUTPUT_DTYPE_SINCE:
                named["output_dtype"] = ONNX_DTYPES[dtype]
            else:
                shape = tensor(types[1], self.name).shape
                inputs.append(emitter.constant(np.zeros(shape, dtype)))
        return emitter.emit("QuantizeLinear", inputs, **named)

    def _rounded(self, inputs: Values, attrs: Attrs, float_dtype: str) -> Any:
        x, dtype = np.asarray(inputs[0]), str_of(attrs, "dtype")
        with np.errstate(all="ignore"):
            nearest = np.rint(rounded(x / _along(inputs[1], x.ndim, attrs), float_dtype))
            if len(inputs) == 3:
                nearest = nearest + _along(np.asarray(inputs[2]).astype(np.float64), x.ndim, attrs)
            return np.clip(np.nan_to_num(nearest), *integer_range(dtype)).astype(dtype)

    def _operand_dtype(self, partial: PartialApplication, hints: Hints) -> str:
        return self._scale_dtype(partial, hints)

    def _scale_dtype(self, partial: PartialApplication, hints: Hints) -> str:
        for kind in partial.operands[:2]:
            if isinstance(kind, TensorType):
                return kind.dtype
        return hints.dtype if hints.dtype in FLOAT_DTYPES else "float32"

    def _zero_dtype(self, partial: PartialApplication, hints: Hints) -> str:
        known = partial.attrs.get("dtype")
        return str(known) if known is not None else hints.choices.choice(QUANTIZED_DTYPES)


def _along(values: Any, rank: int, attrs: Attrs) -> Any:
    """Return one number, or a vector as a tensor of a rank that has it along the axis."""
    array = np.asarray(values)
    if array.size == 1:
        return array.reshape(())
    axis = int_of(attrs, "axis")
    return array.reshape([array.size if index == axis else 1 for index in range(rank)])


def _given(node: OnnxNode) -> tuple[str, ...]:
    """Return the inputs without a zero point that is left out."""
    return node.inputs[: 3 if has_input(node, 2) else 2]


def _axis_of(node: OnnxNode) -> int:
    """Return the axis of a node; 0 where it has one scale."""
    scale, x = input_type(node, 1), input_type(node, 0)
    if scale.size == 1 and scale.rank <= 1:
        return 0
    return front_axis(node.op_type, attr_int(node, "axis", _DEFAULT_AXIS), x.rank)


def _onnx_axis(types: Types, attrs: Attrs) -> dict[str, Any]:
    """Return ONNX's attribute where it has a meaning and is not the default."""
    axis = int_of(attrs, "axis")
    is_whole = tensor(types[1], "scale").size == 1
    return {} if is_whole or axis == _DEFAULT_AXIS else {"axis": axis}
