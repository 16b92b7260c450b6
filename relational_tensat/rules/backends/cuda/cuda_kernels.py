"""The kernels of an NVIDIA GPU that do several operators at once.

- products of cuBLASLt: scaled, factors transposed, with an addend, a bias and an activation;
- convolutions of cuDNN with an addend (those with bias and relu are plain operators);
- functions of two elements with an activation behind them, by our kernel ``binary``;
- norms of a sum of two tensors, by our kernels ``layer_norm`` and ``rms_norm``.
"""

from __future__ import annotations

from typing import ClassVar

from relational_tensat.base.errors import ShapeError
from relational_tensat.gpu.catalogue import ACTIVATION_CODES, BINARY_CODES
from relational_tensat.rules.backends.fused_kernel import FusedKernel, FusedPart, in_turn
from relational_tensat.rules.backends.scaled_product import SCALED, WINDOW, ConvAdd, scaled_product
from relational_tensat.tensor import Attrs, TensorType, ValueType
from relational_tensat.tensor.operators import Attr, Family, Use, get_operator
from relational_tensat.tensor.operators.attributes import str_of
from relational_tensat.tensor.operators.base import Types
from relational_tensat.tensor.operators.samples import Hints, PartialApplication
from relational_tensat.tensor.operators.traits import NO_ACTIVATION

#: By their names in kernels, operators with attributes.
_OPERATORS: dict[str, tuple[str, Attrs]] = {"gelu_tanh": ("gelu", {"approximate": "tanh"})}


def activation_operator(act: str) -> tuple[str, Attrs]:
    """Return the operator, and its attributes, that an activation is apart."""
    return _OPERATORS.get(act, (act, {}))


def _activation_part(attrs: Attrs, operand: int) -> FusedPart | None:
    """Return a kernel's activation as one of its parts; None where it has none."""
    act = str_of(attrs, "act")
    if act == NO_ACTIVATION:
        return None
    op, own = activation_operator(act)
    return FusedPart(op, (operand,), own)


class CudnnConvAdd(ConvAdd):
    """relu(x * w + bias + z), or without relu: cudnnConvolutionBiasActivationForward."""

    name = "cuda_conv_add"
    attrs = (*WINDOW, Attr("act", "str", NO_ACTIVATION, (NO_ACTIVATION, "relu")))

    def activation(self, attrs: Attrs, operand: int) -> FusedPart | None:
        """One of cuDNN's."""
        return _activation_part(attrs, operand)


CONVOLUTION_KERNELS: tuple[type[FusedKernel], ...] = (CudnnConvAdd,)


class CudaElementwise(FusedKernel):
    """act(a op b), operands broadcast."""

    name = "cuda_elementwise"
    arity = (2, 2)
    attrs = (
        Attr("op", "str", choices=tuple(BINARY_CODES)),
        Attr("act", "str", choices=tuple(act for act in ACTIVATION_CODES if act != NO_ACTIVATION)),
    )

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        """The function of two elements, the activation."""
        return in_turn(FusedPart(str_of(attrs, "op"), (0, 1)), _activation_part(attrs, 2))

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        return get_operator("add").suggest_operand(index, partial, hints)


ELEMENTWISE_KERNELS: tuple[type[FusedKernel], ...] = (CudaElementwise,)


class CudaSkipLayerNorm(FusedKernel):
    """The layer norm of x + skip. Operands x, skip, scale and, if any, bias."""

    name = "cuda_skip_layer_norm"
    computes = Family.NORMALIZATION
    uses = (Use.VALUE, Use.ADDED, Use.MULTIPLIED, Use.ADDED)
    arity = (3, 4)
    attrs = (Attr("axis", "int"), Attr("epsilon", "float", samples=(1e-5,), timed_as=1e-5))
    _norm: ClassVar[str] = "layer_norm"

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        """Sum, norm."""
        count = len(inputs)
        return [FusedPart("add", (0, 1)), FusedPart(self._norm, (count, *range(2, count)), attrs)]

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        """Return the type of what is added.

        Raises:
            ShapeError: its two types differ.
        """
        if inputs[0] != inputs[1]:
            raise ShapeError(f"{self.name} adds {inputs[1]} to {inputs[0]}, expected one type")
        return super().infer(inputs, attrs)

    def weight_operands(self, inputs: Types) -> tuple[int, ...]:
        """Scale and bias."""
        return tuple(range(2, len(inputs)))

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        """As the norm's; the addends have one type."""
        x, skip, *others = partial.operands
        summand = x or skip
        if index < 2 and isinstance(summand, TensorType):
            return summand
        own = partial._replace(operands=[summand, *others])
        return get_operator(self._norm).suggest_operand(max(index - 1, 0), own, hints)


class SkipRmsNorm(CudaSkipLayerNorm):
    """The root-mean-square norm of x + skip. Operands x, skip, scale."""

    name = "cuda_skip_rms_norm"
    arity = (3, 3)
    _norm = "rms_norm"


NORM_KERNELS: tuple[type[FusedKernel], ...] = (CudaSkipLayerNorm, SkipRmsNorm)


class CudaProduct(FusedKernel):
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

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        """Transposes, product, scale, sums with bias and addend, activation."""
        parts = scaled_product(self.name, inputs, attrs)
        for number in reversed(range(2, len(inputs))):
            parts.append(FusedPart("add", (len(inputs) + len(parts) - 1, number)))
        return in_turn(*parts, _activation_part(attrs, len(inputs) + len(parts) - 1))

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


class ProductAdd(CudaProduct):
    """act(alpha · A·B + addend + bias); operands A, B, addend and, if any, bias."""

    name = "cuda_product_add"
    uses = (Use.VALUE, Use.VALUE, Use.ADDED, Use.ADDED)
    arity = (3, 4)
    _addend = 2
    _bias = 3


PRODUCT_KERNELS: tuple[type[FusedKernel], ...] = (CudaProduct, ProductAdd)
