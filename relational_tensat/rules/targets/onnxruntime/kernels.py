"""The kernels that onnxruntime makes of several operators on a processor."""

from __future__ import annotations

from relational_tensat.base.errors import ShapeError
from relational_tensat.rules.targets.fused_kernel import FusedKernel, Part, in_turn, last_swapped
from relational_tensat.tensor import Attrs, AttrValue, TensorType
from relational_tensat.tensor.hints import Hints
from relational_tensat.tensor.operators import ACTIVATIONS, Attr, Family, Use, get_operator
from relational_tensat.tensor.operators.activations import NO_ACTIVATION
from relational_tensat.tensor.operators.attributes import bool_of, float_of, int_of, str_of
from relational_tensat.tensor.operators.base import Types, tensor
from relational_tensat.tensor.operators.padding import suggest_window
from relational_tensat.tensor.operators.sampling import NUMBERS, PartialApplication

_WINDOW = ("stride", "pad", "dilation")


class ConvAdd(FusedKernel):
    """act(x * w + bias + z): a convolution that adds to what is there. Operands x, w, z and, if any, bias.

    onnxruntime's Conv of the blocked layout, and FusedConv.
    """

    name = "ort_conv_add"
    computes = Family.CONVOLUTION
    uses = (Use.VALUE, Use.VALUE, Use.ADDED, Use.ADDED)
    arity = (3, 4)
    attrs = (
        Attr("stride", "ints"),
        Attr("pad", "padding"),
        Attr("dilation", "ints", ()),
        Attr("act", "str", NO_ACTIVATION, ACTIVATIONS),
    )

    def parts(self, inputs: Types, attrs: Attrs) -> list[Part]:
        """Convolution, sum, activation."""
        window = {name: attrs[name] for name in _WINDOW}
        n, act = len(inputs), str_of(attrs, "act")
        return in_turn(
            Part("conv", (0, 1, 3)[: n - 1], window),
            Part("add", (n, 2)),
            Part(act, (n + 1,)) if act != NO_ACTIVATION else None,
        )

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        """Return the convolution's type, which the addend must have, too."""
        result = super().infer(inputs, attrs)
        if inputs[2] != result:
            raise ShapeError(f"{self.name}: the addend is {inputs[2]}, the result {result}")
        return result

    def weight_operands(self, inputs: Types) -> tuple[int, ...]:
        """The filters and the bias."""
        return (1, *range(3, len(inputs)))

    def prepared_operands(self, inputs: Types) -> tuple[int, ...]:
        """As a convolution's."""
        return self.weight_operands(inputs)

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        """As a convolution's, whose bias comes third; the addend is like the result."""
        if index == 2:
            return None if partial.target is None else hints.type(partial.target)
        operands = [*partial.operands[:2], *partial.operands[3:]]
        own = partial._replace(operands=operands)
        return get_operator("conv").suggest_operand(min(index, 2), own, hints)

    def suggest_attribute(self, attr: Attr, partial: PartialApplication, hints: Hints) -> AttrValue:
        """As a convolution's."""
        return suggest_window(attr.name, partial, hints)


class ScaledProduct(FusedKernel):
    """alpha · A·B of matrices or batches of them, each transposed first on demand.

    onnxruntime's FusedMatMul.
    """

    name = "ort_scaled_product"
    computes = Family.MATRIX_PRODUCT
    arity = (2, 2)
    attrs = (
        Attr("alpha", "float", 1.0, samples=NUMBERS, timed_as=1.0),
        Attr("trans_a", "bool", False),
        Attr("trans_b", "bool", False),
    )

    def parts(self, inputs: Types, attrs: Attrs) -> list[Part]:
        """Transposes, product, scale."""
        parts: list[Part] = []
        factors = []
        for number, name in enumerate(("trans_a", "trans_b")):
            factors.append(number)
            if bool_of(attrs, name):
                kind = tensor(inputs[number], self.name)
                if kind.rank < 2:
                    raise ShapeError(f"{self.name} takes matrices, not {kind}")
                factors[-1] = len(inputs) + len(parts)
                parts.append(Part("transpose", (number,), {"perm": last_swapped(kind)}))
        parts.append(Part("matmul", tuple(factors)))
        if attrs["alpha"] != 1.0:
            scale = {"value": float_of(attrs, "alpha")}
            parts.append(Part("smul", (len(inputs) + len(parts) - 1,), scale))
        return parts

    def weight_operands(self, inputs: Types) -> tuple[int, ...]:
        """A right matrix that is not one of a batch."""
        return get_operator("matmul").weight_operands(inputs)

    def prepared_operands(self, inputs: Types) -> tuple[int, ...]:
        """As a product's."""
        return get_operator("matmul").prepared_operands(inputs)


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


class SkipLayerNorm(FusedKernel):
    """The layer norm, over the last axis, of x + skip. Operands x, skip, scale, bias."""

    name = "ort_skip_layer_norm"
    computes = Family.NORMALIZATION
    uses = (Use.VALUE, Use.ADDED, Use.MULTIPLIED, Use.ADDED)
    arity = (4, 4)
    attrs = (Attr("axis", "int"), Attr("epsilon", "float", samples=(1e-5,), timed_as=1e-5))

    def parts(self, inputs: Types, attrs: Attrs) -> list[Part]:
        """Sum, layer norm."""
        norm = {"axis": int_of(attrs, "axis"), "epsilon": float_of(attrs, "epsilon")}
        return [Part("add", (0, 1)), Part("layer_norm", (4, 2, 3), norm)]

    def weight_operands(self, inputs: Types) -> tuple[int, ...]:
        """Scale and bias."""
        return (2, 3)


KERNELS = (ConvAdd, ScaledProduct, BiasGelu, QuickGelu, SkipLayerNorm)
