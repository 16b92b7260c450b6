"""Two kernels that several runtimes have: scaled products of factors that may be transposed, and
convolutions with an addend and an activation.
"""

from __future__ import annotations

from abc import abstractmethod

from relational_tensat.base.errors import ShapeError
from relational_tensat.rules.backends.fused_kernel import (
    FusedKernel,
    FusedPart,
    in_turn,
    last_swapped,
)
from relational_tensat.tensor import Attrs, AttrValue, TensorType
from relational_tensat.tensor.operators import Attr, Family, Use, get_operator
from relational_tensat.tensor.operators.attributes import bool_of, float_of
from relational_tensat.tensor.operators.base import Types, tensor
from relational_tensat.tensor.operators.samples import NUMBERS, Hints, PartialApplication
from relational_tensat.tensor.operators.shapes import one_dtype
from relational_tensat.tensor.operators.windows import suggest_window
from relational_tensat.tensor.types import FLOAT_DTYPES

#: How windows slide.
WINDOW = (Attr("stride", "ints"), Attr("pad", "padding"), Attr("dilation", "ints", ()))


def window_of(attrs: Attrs) -> dict[str, AttrValue]:
    """Return the attributes that say how windows slide."""
    return {attr.name: attrs[attr.name] for attr in WINDOW}


class ConvAdd(FusedKernel):
    """act(x * w + bias + z). Operands x, w, z and, if any, bias; ``attrs`` begin with ``WINDOW``."""

    computes = Family.CONVOLUTION
    uses = (Use.VALUE, Use.VALUE, Use.ADDED, Use.ADDED)
    arity = (3, 4)

    @abstractmethod
    def activation(self, attrs: Attrs, operand: int) -> FusedPart | None:
        """Return its activation of a part's result; None where it has none."""

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        """Convolution, sum, activation."""
        n = len(inputs)
        return in_turn(
            FusedPart("conv", (0, 1, 3)[: n - 1], window_of(attrs)),
            FusedPart("add", (n, 2)),
            self.activation(attrs, n + 1),
        )

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        """Return the convolution's type, which the addend must have, too.

        Raises:
            ShapeError: it has not.
        """
        result = super().infer(inputs, attrs)
        if inputs[2] != result:
            raise ShapeError(f"{self.name}: the addend is {inputs[2]}, the result {result}")
        return result

    def weight_operands(self, inputs: Types) -> tuple[int, ...]:
        """The filters and the bias."""
        return (1, *range(3, len(inputs)))

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
        if attr in WINDOW:
            return suggest_window(attr.name, partial, hints)
        return super().suggest_attribute(attr, partial, hints)


#: The scale, and which factors are transposed.
SCALED = (
    Attr("alpha", "float", 1.0, samples=NUMBERS, timed_as=1.0),
    Attr("trans_a", "bool", False),
    Attr("trans_b", "bool", False),
)


def scaled_product(label: str, inputs: Types, attrs: Attrs) -> list[FusedPart]:
    """Return the parts of alpha · A·B, for ``SCALED``: transposes, product, scale.

    Args:
        inputs: of the kernel; the factors come first.

    Raises:
        ShapeError: the operands are not of one type of floats, or a factor that is transposed is no matrix.
    """
    kinds = [tensor(kind, label) for kind in inputs]
    one_dtype(label, kinds, FLOAT_DTYPES)
    parts: list[FusedPart] = []
    factors = []
    for number, name in enumerate(("trans_a", "trans_b")):
        factors.append(number)
        if bool_of(attrs, name):
            if kinds[number].rank < 2:
                raise ShapeError(f"{label} takes matrices, not {kinds[number]}")
            factors[-1] = len(inputs) + len(parts)
            parts.append(FusedPart("transpose", (number,), {"perm": last_swapped(kinds[number])}))
    parts.append(FusedPart("matmul", tuple(factors)))
    if attrs["alpha"] != 1.0:
        scale = {"value": float_of(attrs, "alpha")}
        parts.append(FusedPart("smul", (len(inputs) + len(parts) - 1,), scale))
    return parts
