"""What element-wise operators of one operand share."""

from __future__ import annotations

from typing import Any, ClassVar

from relational_tensat.tensor.field import Field
from relational_tensat.tensor.operators.base import Operator, Types, Values, tensor
from relational_tensat.tensor.operators.onnx_form import Mapped, OnnxNode
from relational_tensat.tensor.operators.shapes import one_dtype
from relational_tensat.tensor.types import FLOAT_DTYPES, Attrs, TensorType


class Unary(Operator):
    """A function of each element; the result has the operand's type."""

    #: The element types that it computes with.
    accepts: ClassVar[frozenset[str]] = FLOAT_DTYPES

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        kind = tensor(inputs[0], self.name)
        one_dtype(self.name, [kind], self.accepts)
        return kind

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        """A random function, one per value of the attributes."""
        attr_texts = [f"{name}={value}" for name, value in attrs.items()]
        return field.function(" ".join([self.name, *attr_texts]), inputs[0])

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        return Mapped(self.name, (node.inputs[0],))
