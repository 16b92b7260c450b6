"""The kernels that onnxruntime makes of several operators on a processor."""

from __future__ import annotations

from relational_tensat.rules.targets.fused_kernel import FusedKernel, Part
from relational_tensat.rules.targets.onnxruntime.contrib import CONTRIB
from relational_tensat.rules.targets.scaled_product import SCALED, scaled_product
from relational_tensat.tensor import Attrs, ValueType
from relational_tensat.tensor.operators import Attr, Family, Use, get_operator
from relational_tensat.tensor.operators.attributes import bool_of, float_of
from relational_tensat.tensor.operators.base import Types, tensor
from relational_tensat.tensor.operators.onnx_form import Names, OnnxEmitter
from relational_tensat.tensor.operators.sampling import NUMBERS
from relational_tensat.tensor.operators.work_steps import steps_of_product


class ScaledProduct(FusedKernel):
    """alpha · A·B of matrices of floats or batches of them, each transposed first on demand.

    onnxruntime's FusedMatMul: it makes none of products of integers.
    """

    name = "ort_scaled_product"
    computes = Family.MATRIX_PRODUCT
    arity = (2, 2)
    attrs = SCALED

    def parts(self, inputs: Types, attrs: Attrs) -> list[Part]:
        """Transposes, product, scale.

        Raises:
            ShapeError: the factors are of integers, or one that is transposed is no matrix.
        """
        return scaled_product(self.name, inputs, attrs)

    def works(self, inputs: Types, output: ValueType, attrs: Attrs) -> list[tuple[str, int]]:
        """Those of a product: nothing is transposed for it."""
        return [steps_of_product(inputs[0], inputs[1], output)]

    def weight_operands(self, inputs: Types) -> tuple[int, ...]:
        """A right matrix that is not one of a batch."""
        return get_operator("matmul").weight_operands(inputs)

    def prepared_operands(self, inputs: Types) -> tuple[int, ...]:
        """As a product's."""
        return get_operator("matmul").prepared_operands(inputs)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        """Write onnxruntime's own operator, which is what is measured alone."""
        trans = {f"trans{name}": int(bool_of(attrs, f"trans_{name.lower()}")) for name in "AB"}
        alpha = float_of(attrs, "alpha")
        return emitter.emit_of(CONTRIB, "FusedMatMul", inputs, alpha=alpha, **trans)


class BiasGelu(FusedKernel):
    """gelu(x + v) with a vector v."""

    name = "ort_bias_gelu"
    arity = (2, 2)
    uses = (Use.VALUE, Use.ADDED)

    def parts(self, inputs: Types, attrs: Attrs) -> list[Part]:
        """Sum, gelu."""
        return [Part("add", (0, 1)), Part("gelu", (2,))]

    def weight_operands(self, inputs: Types) -> tuple[int, ...]:
        """The vector."""
        return (1,)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        """Write onnxruntime's own operator, which is what is measured alone."""
        return emitter.emit_of(CONTRIB, "BiasGelu", inputs)


class QuickGelu(FusedKernel):
    """x · sigmoid(alpha x): SiLU where alpha is 1."""

    name = "ort_quick_gelu"
    attrs = (Attr("alpha", "float", 1.0, samples=NUMBERS, timed_as=1.0),)

    def parts(self, inputs: Types, attrs: Attrs) -> list[Part]:
        """Scale, sigmoid, product."""
        if attrs["alpha"] == 1.0:
            return [Part("sigmoid", (0,)), Part("mul", (0, 1))]
        scale = Part("smul", (0,), {"value": float_of(attrs, "alpha")})
        return [scale, Part("sigmoid", (1,)), Part("mul", (0, 2))]

    def works(self, inputs: Types, output: ValueType, attrs: Attrs) -> list[tuple[str, int]]:
        """An exponential: it takes half as long as the sigmoid and the product apart."""
        return [("exp", tensor(output, self.name).size)]

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        """Write onnxruntime's own operator, which is what is measured alone."""
        alpha = float_of(attrs, "alpha")
        return emitter.emit_of(CONTRIB, "QuickGelu", inputs, alpha=alpha)


KERNELS: tuple[type[FusedKernel], ...] = (ScaledProduct, BiasGelu, QuickGelu)
