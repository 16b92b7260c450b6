"""The parts of dynamic quantization: ONNX's DynamicQuantizeLinear and MatMulInteger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor.field import Field
from relational_tensat.tensor.floats import rounded
from relational_tensat.tensor.operators.base import Operator, Types, Values, tensor
from relational_tensat.tensor.operators.onnx_form import (
    Mapped,
    Names,
    OnnxEmitter,
    OnnxNode,
    has_input,
)
from relational_tensat.tensor.operators.registry import get_operator, register
from relational_tensat.tensor.operators.samples import Hints, PartialApplication, shape_of
from relational_tensat.tensor.operators.shapes import operands
from relational_tensat.tensor.operators.traits import Family, Use
from relational_tensat.tensor.types import Attrs, TensorType, TupleType, ValueType, tensors_of

#: Integers whose products are summed as int32.
_FACTORS = ("int8", "uint8")
_FLOAT = "float32"
#: The type of DynamicQuantizeLinear's integers, and the largest of them.
_QUANTIZED, _LARGEST = "uint8", 255
#: So many integers random functions give where exact arithmetic has them for quantized values.
_FEW = 11


@register
class MatmulInteger(Operator):
    """(a - its zero point) @ (b - its zero point) in int32, of matrices or batches of them.

    Operands a, b and, if not 0, the zero points: of a one number, of b one number or one for each column.
    """

    name = "matmul_integer"
    computes = Family.MATRIX_PRODUCT
    uses = (Use.VALUE, Use.VALUE, Use.STRUCTURE, Use.STRUCTURE)
    is_exact = True
    arity = (2, 4)
    onnx = ("MatMulInteger",)

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        kinds = operands(self.name, inputs)
        for kind in kinds:
            if kind.dtype not in _FACTORS:
                raise ShapeError(f"{self.name} takes {' and '.join(_FACTORS)}, not {kind}")
        for index, zero in enumerate(kinds[2:]):
            if zero.dtype != kinds[index].dtype:
                raise ShapeError(f"{self.name}: the zero point is {zero}, of {kinds[index]}")
            columns = () if index == 0 else (kinds[1].shape[-1:],)
            if zero.shape not in ((), (1,), *columns):
                raise ShapeError(f"{self.name}: the zero point is {zero}, of {kinds[index]}")
        factors = tuple(TensorType("int32", kind.shape) for kind in kinds[:2])
        return tensor(get_operator("matmul").infer(factors, {}), self.name)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        factors = [np.asarray(value).astype(np.int64) for value in inputs]
        left, right = factors[:2]
        if len(factors) > 2:
            left = left - factors[2]
        if len(factors) > 3:
            right = right - factors[3]
        return np.matmul(left, right).astype(np.int32)

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        return self.evaluate(inputs, attrs)

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """Two per product and sum."""
        return 2 * tensor(output, self.name).size * tensor(inputs[0], self.name).shape[-1]

    def weight_operands(self, inputs: Types) -> tuple[int, ...]:
        """A right matrix that is not one of a batch, and its zero points."""
        right = get_operator("matmul").weight_operands(inputs[:2])
        return (*right, 3) if len(inputs) == 4 else right

    def prepared_operands(self, inputs: Types) -> tuple[int, ...]:
        """As a product's."""
        return get_operator("matmul").prepared_operands(inputs[:2])

    def summed_terms(self, inputs: Types) -> int:
        return tensor(inputs[1], self.name).shape[-2]

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        if index > 1:
            known = partial.operands[index - 2]
            dtype = known.dtype if isinstance(known, TensorType) else hints.choices.choice(_FACTORS)
            columns = (shape_of(partial.operands[1]) or ())[-1:] if index == 3 else ()
            return TensorType(dtype, columns if hints.choices.below(2) else ())
        kind = get_operator("matmul").suggest_operand(index, partial, hints)
        zero = partial.operands[index + 2] if len(partial.operands) > index + 2 else None
        dtype = zero.dtype if isinstance(zero, TensorType) else hints.choices.choice(_FACTORS)
        return None if kind is None else TensorType(dtype, kind.shape)

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        if has_input(node, 3) and not has_input(node, 2):
            return None
        given = 4 if has_input(node, 3) else 3 if has_input(node, 2) else 2
        return Mapped(self.name, node.inputs[:given])

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        return emitter.emit("MatMulInteger", list(inputs))


@register
class DynamicQuantize(Operator):
    """Integers of uint8 for x, their scale and their zero point: 0 and all of x is within 0..255.

    Gives (x / scale + zero point, to the nearest integer; scale; zero point).
    """

    name = "dynamic_quantize"
    multi_output = True
    rounds = True
    divides = True
    onnx = ("DynamicQuantizeLinear",)

    def infer(self, inputs: Types, attrs: Attrs) -> TupleType:
        (x,) = operands(self.name, inputs)
        if x.dtype != _FLOAT:
            raise ShapeError(f"{self.name} takes {_FLOAT}, not {x}")
        return TensorType(_QUANTIZED, x.shape), TensorType(_FLOAT, ()), TensorType(_QUANTIZED, ())

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        """As every runtime does, in float32."""
        x = np.asarray(inputs[0])
        low, high = min(0.0, float(np.min(x))), max(0.0, float(np.max(x)))
        scale = _float(_float(high - low) / _LARGEST) if high > low else 1.0
        with np.errstate(all="ignore"):
            zero = float(np.clip(np.rint(_float(-low / scale)), 0, _LARGEST))
            nearest = np.rint(rounded(x / scale, _FLOAT)) + zero
        quantized = np.clip(np.nan_to_num(nearest), 0, _LARGEST).astype(_QUANTIZED)
        return quantized, np.asarray(scale), np.asarray(zero).astype(_QUANTIZED)

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        """Random functions of all elements together; of integers, with few values."""
        x = np.asarray(inputs[0])
        mixed = field.function(f"{self.name} element", x)
        both = field.sum(mixed, tuple(range(x.ndim)), keepdims=False)
        quantized = field.function(f"{self.name} {int(both)}", x) % _FEW
        scale = field.function(f"{self.name} scale", both)
        return quantized, scale, field.function(f"{self.name} zero", both) % _FEW

    def is_defined(self, inputs: Values) -> bool:
        """A value that is no number has no integer."""
        return bool(np.isfinite(inputs[0]).all())

    def works(self, inputs: Types, output: ValueType, attrs: Attrs) -> list[tuple[str, int]]:
        """It looks for the extremes, and quantizes: works through its operand twice."""
        return [("quantize", 2 * tensor(inputs[0], self.name).size)]

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return max(_LARGEST, sizes[0])

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        parts = tensors_of(partial.result) if partial.result is not None else ()
        return TensorType(_FLOAT, parts[0].shape if parts else hints.tensor_type().shape)

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        return Mapped(self.name, node.inputs[:1]) if all(node.outputs) else None

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        return emitter.emit("DynamicQuantizeLinear", list(inputs), outputs=3)


def _float(number: float) -> float:
    return float(np.float32(number))
