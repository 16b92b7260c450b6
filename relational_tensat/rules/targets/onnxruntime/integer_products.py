"""The kernel of dynamic quantization: a product of integers, brought back to floats."""

from __future__ import annotations

from relational_tensat.base.errors import ShapeError
from relational_tensat.rules.targets.fused_kernel import FusedKernel, Part, in_turn
from relational_tensat.rules.targets.onnxruntime.contrib import CONTRIB
from relational_tensat.tensor import Attrs, ValueType, tensors_of
from relational_tensat.tensor.operators import Family
from relational_tensat.tensor.operators.base import Types
from relational_tensat.tensor.operators.onnx_form import Names, OnnxEmitter

#: Integers, scale and zero point of both factors.
_FACTORS = 6


class IntegerProduct(FusedKernel):
    """(a · b) · (s · t) + bias. Operands a, (s, zero point), (b, t, zero point), perhaps bias.

    onnxruntime's MatMulIntegerToFloat; its DynamicQuantizeMatMul is DynamicQuantizeLinear and this.
    """

    name = "ort_integer_product"
    computes = Family.MATRIX_PRODUCT
    takes_tuples = True
    arity = (3, None)

    def parts(self, inputs: Types, attrs: Attrs) -> list[Part]:
        """Product, cast, product of the scales, product with it, bias.

        Raises:
            ShapeError: there are more or fewer operands.
        """
        count = sum(len(tensors_of(kind)) for kind in inputs)
        if count not in (_FACTORS, _FACTORS + 1):
            raise ShapeError(f"{self.name}: {count} tensors, expected two factors, perhaps a bias")
        return in_turn(
            Part("matmul_integer", (0, 3, 2, 5)),
            Part("cast", (count,), {"dtype": "float32"}),
            Part("mul", (1, 4)),
            Part("mul", (count + 1, count + 2)),
            Part("add", (count + 3, _FACTORS)) if count > _FACTORS else None,
        )

    def works(self, inputs: Types, output: ValueType, attrs: Attrs) -> list[tuple[str, int]]:
        """None beside its sums of products."""
        return []

    def summed_dtype(self, inputs: Types, output: ValueType) -> str:
        """Sums of integers."""
        return "int32"

    def weight_operands(self, inputs: Types) -> tuple[int, ...]:
        """The right matrix, with scale and zero point, and the bias."""
        first = 2 if isinstance(inputs[1], tuple) else 3  # with tuples, or in a graph
        return tuple(range(first, len(inputs)))

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        """Write onnxruntime's own operator, which is what is measured alone."""
        a, s, z, b, t, v, *bias = inputs
        return emitter.emit_of(CONTRIB, "MatMulIntegerToFloat", [a, b, s, t, z, v, *bias])


INTEGER_KERNELS: tuple[type[FusedKernel], ...] = (IntegerProduct,)
