"""Comparisons of floats, logic of their results, choices between elements, and the test for NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor.field import Field
from relational_tensat.tensor.operators.base import Operator, Types, Values, tensor
from relational_tensat.tensor.operators.onnx_form import Mapped, OnnxNode, input_type
from relational_tensat.tensor.operators.registry import register
from relational_tensat.tensor.operators.samples import Hints, PartialApplication
from relational_tensat.tensor.operators.shapes import broadcast, one_dtype, operands
from relational_tensat.tensor.operators.traits import Use
from relational_tensat.tensor.types import DTYPE_BYTES, FLOAT_DTYPES, Attrs, TensorType


@register
class IsNan(Operator):
    """Whether each element is no number: NaN."""

    name = "is_nan"
    tells_nan = True
    onnx = ("IsNaN",)

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        kind = tensor(inputs[0], self.name)
        one_dtype(self.name, [kind], FLOAT_DTYPES)
        return TensorType("bool", kind.shape)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return np.isnan(inputs[0])

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        """A random function: residues have no NaN, and nothing may hold because of that."""
        return (field.function(self.name, inputs[0]) % 2).astype(bool)

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        target = partial.target
        return None if target is None else TensorType("float32", target)

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        return Mapped(self.name, (node.inputs[0],))


@register
class Where(Operator):
    """Of each pair of elements the first where the condition holds, else the second, with broadcasting.

    Elements that are not chosen do not count, not even NaN and infinities.
    """

    name = "where"
    arity = (3, 3)
    uses = (Use.CONDITION, Use.MOVED)
    is_exact = True
    #: An element that a condition chooses at run time counts as moderate, like all that is computed then:
    #: else a mask of -inf would keep every rule from the tensor that it is added to.
    keeps_size = False
    onnx = ("Where",)

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        condition, first, second = operands(self.name, inputs)
        if condition.dtype != "bool":
            raise ShapeError(f"where: the condition is {condition}, expected bool")
        dtype = one_dtype(self.name, [first, second], frozenset(DTYPE_BYTES))
        return TensorType(dtype, broadcast(self.name, condition.shape, first.shape, second.shape))

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return np.where(*inputs)

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return max(sizes[1:])

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        known = (partial.target, *partial.shapes, hints.tensor_type().shape)
        shape = next(shape for shape in known if shape is not None)
        kind = hints.type(shape) if hints.choices.often() else hints.broadcast(shape)
        return TensorType("bool", kind.shape) if index == 0 else kind

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        return Mapped(self.name, node.inputs)


#: Since when ONNX's operators align operands from the last axis on.
_BROADCASTING = 7


class _Comparison(Operator):
    """Whether something holds for two elements; NaN is neither less than, nor equal to, anything.

    Comparisons of integers, which make masks and shapes, are left to ONNX.
    """

    arity = (2, 2)
    uses = (Use.CONDITION,)
    tells_nan = True

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        left, right = operands(self.name, inputs)
        one_dtype(self.name, [left, right], FLOAT_DTYPES)
        return TensorType("bool", broadcast(self.name, left.shape, right.shape))

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        """A random function: residues have no order."""
        return (field.function(self.name, *inputs) % 2).astype(bool)

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        shape = partial.target if partial.target is not None else partial.shapes[1 - index]
        dtype = hints.dtype if hints.dtype in FLOAT_DTYPES else "float32"
        return None if shape is None else TensorType(dtype, shape)

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        if node.opset < _BROADCASTING or input_type(node, 0).dtype not in FLOAT_DTYPES:
            return None
        is_turned = node.op_type.startswith("Greater")
        return Mapped(self.name, node.inputs[::-1] if is_turned else node.inputs)


@register
class Less(_Comparison):
    """a < b."""

    name = "less"
    onnx = ("Less", "Greater")

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return np.less(*inputs)


@register
class LessOrEqual(_Comparison):
    """a ≤ b."""

    name = "less_or_equal"
    onnx = ("LessOrEqual", "GreaterOrEqual")

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return np.less_equal(*inputs)


@register
class Equal(_Comparison):
    """a = b."""

    name = "equal"
    onnx = ("Equal",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return np.equal(*inputs)


class _Logical(Operator):
    """A function of conditions."""

    arity = (2, 2)
    uses = (Use.CONDITION,)
    is_exact = True

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        kinds = operands(self.name, inputs)
        for kind in kinds:
            if kind.dtype != "bool":
                raise ShapeError(f"{self.name} takes conditions, not {kind.dtype}")
        return TensorType("bool", broadcast(self.name, *(kind.shape for kind in kinds)))

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        known = (partial.target, *partial.shapes)
        shape = next((shape for shape in known if shape is not None), None)
        return None if shape is None else TensorType("bool", shape)

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        return Mapped(self.name, node.inputs) if node.opset >= _BROADCASTING else None


@register
class LogicalNot(_Logical):
    """Whether a condition does not hold."""

    name = "logical_not"
    arity = (1, 1)
    onnx = ("Not",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return np.logical_not(inputs[0])


@register
class LogicalAnd(_Logical):
    """Whether two conditions hold."""

    name = "logical_and"
    onnx = ("And",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return np.logical_and(*inputs)


@register
class LogicalOr(_Logical):
    """Whether one of two conditions holds, or both."""

    name = "logical_or"
    onnx = ("Or",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return np.logical_or(*inputs)
