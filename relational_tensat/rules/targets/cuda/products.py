"""Products as cuBLASLt has them: scaled, factors transposed, with an addend, a bias and an activation."""

from __future__ import annotations

from typing import ClassVar

from relational_tensat.base.errors import ShapeError
from relational_tensat.rules.targets.cuda.activations import activation_part
from relational_tensat.rules.targets.fused_kernel import FusedKernel, Part, in_turn
from relational_tensat.rules.targets.scaled_product import SCALED, scaled_product
from relational_tensat.tensor import Attrs, TensorType, ValueType
from relational_tensat.tensor.hints import Hints
from relational_tensat.tensor.operators import Attr, Family, Use, get_operator
from relational_tensat.tensor.operators.activations import NO_ACTIVATION
from relational_tensat.tensor.operators.base import Types
from relational_tensat.tensor.operators.sampling import PartialApplication


class Product(FusedKernel):
    """act(alpha · A·B + bias) for a vector of biases, each factor transposed first on demand.

    Its gelu is the approximation by tanh: cuBLASLt has no other.
    """

    name = "cuda_product"
    computes = Family.MATRIX_PRODUCT
    uses: ClassVar[tuple[Use, ...]] = (Use.VALUE, Use.VALUE, Use.ADDED)
    arity = (2, 3)
    attrs = (*SCALED, Attr("act", "str", NO_ACTIVATION, (NO_ACTIVATION, "relu", "gelu_tanh")))
    #: Numbers of the operands behind the factors that it may have: the addend, if it has one, and the bias.
    _addend: ClassVar[int | None] = None
    _bias: ClassVar[int] = 2

    def parts(self, inputs: Types, attrs: Attrs) -> list[Part]:
        """Transposes, product, scale, sums with bias and addend, activation."""
        parts = scaled_product(self.name, inputs, attrs)
        for number in reversed(range(2, len(inputs))):
            parts.append(Part("add", (len(inputs) + len(parts) - 1, number)))
        return in_turn(*parts, activation_part(attrs, len(inputs) + len(parts) - 1))

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        """Return the product's type, which the addend must have, too.

        Raises:
            ShapeError: it has not, or the bias is no vector of as many numbers as there are columns.
        """
        parts, kinds = self.typed_parts(inputs, attrs)
        product = kinds[len(inputs) + [part.op for part in parts].index("matmul")]
        assert isinstance(product, TensorType)
        if self._addend is not None and inputs[self._addend] != product:
            raise ShapeError(f"{self.name}: the addend is {inputs[self._addend]}, not {product}")
        bias = product.with_shape(product.shape[-1:])
        if len(inputs) > self._bias and inputs[self._bias] != bias:
            raise ShapeError(f"{self.name}: the bias is {inputs[self._bias]}, not {bias}")
        return product

    def weight_operands(self, inputs: Types) -> tuple[int, ...]:
        """The bias, and a right matrix that is not one of a batch."""
        bias = tuple(range(self._bias, len(inputs)))
        return (*get_operator("matmul").weight_operands(inputs[:2]), *bias)

    def summed_terms(self, inputs: Types) -> int | None:
        """As a product's."""
        return get_operator("matmul").summed_terms(inputs)

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        """As a product's; the addend is like the result."""
        if index < 2:
            return get_operator("matmul").suggest_operand(index, partial, hints)
        result = partial.result or self._product(partial)
        if not isinstance(result, TensorType):
            return None
        return result if index == self._addend else result.with_shape(result.shape[-1:])

    def _product(self, partial: PartialApplication) -> ValueType | None:
        """Return the type of the product of two factors; None where they do not fit, or are not known."""
        factors = [kind for kind in partial.operands[:2] if kind is not None]
        try:
            attrs = self.normalize(partial.attrs)
            kinds = self.typed_parts(tuple(factors), attrs)[1]
        except ShapeError:
            return None
        return kinds[-1] if len(factors) == 2 else None


class ProductAdd(Product):
    """act(alpha · A·B + addend + bias); operands A, B, addend and, if any, bias."""

    name = "cuda_product_add"
    uses = (Use.VALUE, Use.VALUE, Use.ADDED, Use.ADDED)
    arity = (3, 4)
    _addend = 2
    _bias = 3


PRODUCT_KERNELS: tuple[type[FusedKernel], ...] = (Product, ProductAdd)
