"""Operators that choose between elements, and that say which are no numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor.field import Field
from relational_tensat.tensor.hints import Hints
from relational_tensat.tensor.operators.base import Operator, Types, Values, tensor
from relational_tensat.tensor.operators.onnx_form import Mapped, OnnxNode
from relational_tensat.tensor.operators.registry import register
from relational_tensat.tensor.operators.sampling import PartialApplication
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

    What is not chosen does not count, whatever it is: NaN and infinities included.
    """

    name = "where"
    arity = (3, 3)
    uses = (Use.CONDITION, Use.MOVED)
    is_exact = True
    #: What a condition chooses at run time counts as moderate, as all does that is computed then: a mask
    #: of -inf would keep every rule from what it is added to.
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
