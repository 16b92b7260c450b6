"""Matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor.field import Field
from relational_tensat.tensor.operators.attributes import Attr, str_of
from relational_tensat.tensor.operators.base import Operator, Types, Values, tensor
from relational_tensat.tensor.operators.onnx_form import (
    Mapped,
    Names,
    OnnxEmitter,
    OnnxNode,
    attr_float,
    attr_int,
    emit_activation,
    has_input,
    input_type,
)
from relational_tensat.tensor.operators.registry import register
from relational_tensat.tensor.operators.samples import Hints, PartialApplication
from relational_tensat.tensor.operators.shapes import NUMBER_DTYPES, broadcast, one_dtype, operands
from relational_tensat.tensor.operators.traits import ACTIVATIONS, Family, Use, activate
from relational_tensat.tensor.operators.work_steps import steps_of_product
from relational_tensat.tensor.types import Attrs, TensorType, ValueType, tensors_of


@register
class Matmul(Operator):
    """act(a @ b + bias): [.., M, K] times [.., K, N], batch dimensions broadcast as in NumPy.

    ``bias`` broadcasts into the result's shape without enlarging it.
    """

    name = "matmul"
    computes = Family.MATRIX_PRODUCT
    uses = (Use.VALUE, Use.VALUE, Use.ADDED)
    sums = True
    arity = (2, 3)
    attrs = (Attr("act", "str", "none", ACTIVATIONS),)
    onnx = ("MatMul", "Gemm")

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        kinds = operands(self.name, inputs)
        dtype = one_dtype(self.name, kinds, NUMBER_DTYPES)
        a, b = kinds[0].shape, kinds[1].shape
        if len(a) < 2 or len(b) < 2:
            raise ShapeError(f"matmul takes ranks of 2 and more, not {list(a)} and {list(b)}")
        if a[-1] != b[-2]:
            raise ShapeError(f"matmul: {list(a)} and {list(b)} differ in the summed dimension")
        shape = (*broadcast(self.name, a[:-2], b[:-2]), a[-2], b[-1])
        if len(kinds) == 3 and broadcast(self.name, shape, kinds[2].shape) != shape:
            raise ShapeError(
                f"matmul: bias {list(kinds[2].shape)} does not broadcast into {list(shape)}"
            )
        return TensorType(dtype, shape)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        product = _product(inputs[0], inputs[1])
        if len(inputs) == 3:
            product = product + inputs[2]
        return activate(str_of(attrs, "act"), product)

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        product = field.matmul(inputs[0], inputs[1])
        if len(inputs) == 3:
            product = field.reduced(product + inputs[2])
        return field.activate(str_of(attrs, "act"), product)

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """Two per product and sum, one per element for bias, nothing for a fused activation."""
        size = sum(part.size for part in tensors_of(output))
        return size * (2 * tensor(inputs[0], self.name).shape[-1] + (len(inputs) == 3))

    def works(self, inputs: Types, output: ValueType, attrs: Attrs) -> list[tuple[str, int]]:
        """Itself, an activation, and the products of a batch or the elements of a matrix."""
        return [
            *super().works(inputs, output, attrs),
            steps_of_product(inputs[0], inputs[1], output),
        ]

    def weight_operands(self, inputs: Types) -> tuple[int, ...]:
        """The bias, and a right matrix that is not one of a batch: products of activations are batched."""
        bias = tuple(range(2, len(inputs)))
        return (1, *bias) if tensor(inputs[1], self.name).rank == 2 else bias

    def prepared_operands(self, inputs: Types) -> tuple[int, ...]:
        """The right matrix, packed; not those of a batch."""
        return (1,) if 1 in self.weight_operands(inputs) else ()

    def summed_terms(self, inputs: Types) -> int:
        return tensor(inputs[1], self.name).shape[-2]

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        target, (a, b) = partial.target, partial.shapes[:2]
        sample = target or a or b or ()
        batch = sample[:-2] if len(sample) > 2 else (hints.size(),) * max(0, hints.rank - 2)
        if not hints.choices.often():
            batch = hints.broadcast(batch).shape
        rows = target[-2] if target and len(target) > 1 else hints.size()
        columns = target[-1] if target else hints.size()
        if index == 0:
            inner = b[-2] if b and len(b) > 1 else hints.size()
            return hints.type([*batch, rows, inner])
        if index == 1:
            inner = a[-1] if a else hints.size()
            return hints.type([*batch, inner, columns])
        if a and b and len(a) > 1 and hints.choices.often():
            columns = b[-1]
            return hints.type([[columns], [1, columns], [a[-2], columns]][hints.choices.below(3)])
        return hints.broadcast((*batch, rows, columns))

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        return _read_gemm(node) if node.op_type == "Gemm" else _read_matmul(node)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        kinds = operands(self.name, types)
        if _is_gemm(kinds):
            product = emitter.emit("Gemm", list(inputs))[0]
        else:
            product = emitter.emit("MatMul", list(inputs[:2]))[0]
            if len(kinds) == 3:
                product = emitter.emit("Add", [product, inputs[2]])[0]
        return emit_activation(emitter, product, str_of(attrs, "act"))

    def adds_bias_apart(self, types: Types) -> bool:
        """Where a product of batches has a bias: MatMul and Add. Matrices make one Gemm."""
        return len(types) == 3 and not _is_gemm(operands(self.name, types))


def _product(a: Any, b: Any) -> Any:
    """Return ``a @ b``; all rows of a batch times one matrix are one product, which reads it once."""
    if a.ndim == 2 or b.ndim > 2:
        return np.matmul(a, b)
    rows = a.reshape(math.prod(a.shape[:-1]), a.shape[-1])
    return np.matmul(rows, b).reshape(*a.shape[:-1], b.shape[-1])


def _is_gemm(kinds: Sequence[TensorType]) -> bool:
    """Whether a product is written as one Gemm, bias included, not as MatMul and Add."""
    return len(kinds) == 3 and all(kind.rank <= 2 for kind in kinds) and kinds[0].is_float


def _read_matmul(node: OnnxNode) -> Mapped:
    """Read MatMul; a vector becomes a matrix of one row (left) or one column (right)."""
    a, b = input_type(node, 0), input_type(node, 1)
    left: str | Mapped = node.inputs[0]
    right: str | Mapped = node.inputs[1]
    if a.rank == 1:
        left = Mapped("reshape", (left,), {"shape": (1, *a.shape)})
    if b.rank == 1:
        right = Mapped("reshape", (right,), {"shape": (*b.shape, 1)})
    product = Mapped("matmul", (left, right))
    if a.rank > 1 and b.rank > 1:
        return product
    if a.rank == 0 or b.rank == 0:
        raise ShapeError("MatMul takes no scalars")
    batch = broadcast("matmul", a.shape[:-2], b.shape[:-2])
    rows = a.shape[-2:-1]  # () for a vector
    columns = b.shape[-1:] if b.rank > 1 else ()
    return Mapped("reshape", (product,), {"shape": (*batch, *rows, *columns)})


def _read_gemm(node: OnnxNode) -> Mapped:
    """Read Gemm: alpha A' B' + beta C, where ' is a transpose on demand."""
    left = _transposed(node, 0, "transA")
    right = _transposed(node, 1, "transB")
    alpha, beta = attr_float(node, "alpha", 1.0), attr_float(node, "beta", 1.0)
    bias: str | Mapped | None = None
    if has_input(node, 2) and beta != 0.0:
        name = node.inputs[2]
        bias = name if beta == 1.0 else Mapped("smul", (name,), {"value": beta})
    if alpha == 1.0:
        return Mapped("matmul", (left, right) if bias is None else (left, right, bias))
    product = Mapped("smul", (Mapped("matmul", (left, right)),), {"value": alpha})
    return product if bias is None else Mapped("add", (product, bias))


def _transposed(node: OnnxNode, index: int, flag: str) -> str | Mapped:
    if input_type(node, index).rank != 2:
        raise ShapeError("Gemm takes matrices")
    name = node.inputs[index]
    return Mapped("transpose", (name,), {"perm": (1, 0)}) if attr_int(node, flag, 0) else name
