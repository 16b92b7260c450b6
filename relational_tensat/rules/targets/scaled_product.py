"""Scaled products of factors that may be transposed: what libraries of products have as one kernel."""

from __future__ import annotations

from relational_tensat.base.errors import ShapeError
from relational_tensat.rules.targets.fused_kernel import Part, last_swapped
from relational_tensat.tensor import Attrs
from relational_tensat.tensor.operators import Attr
from relational_tensat.tensor.operators.attributes import bool_of, float_of
from relational_tensat.tensor.operators.base import Types, tensor
from relational_tensat.tensor.operators.sampling import NUMBERS
from relational_tensat.tensor.operators.shapes import one_dtype
from relational_tensat.tensor.types import FLOAT_DTYPES

#: The scale, and which factors are transposed.
SCALED = (
    Attr("alpha", "float", 1.0, samples=NUMBERS, timed_as=1.0),
    Attr("trans_a", "bool", False),
    Attr("trans_b", "bool", False),
)


def scaled_product(label: str, inputs: Types, attrs: Attrs) -> list[Part]:
    """Return the parts of alpha · A·B, for ``SCALED``: transposes, product, scale.

    Args:
        inputs: of the kernel; the factors come first.

    Raises:
        ShapeError: the operands are not of one type of floats, or a factor that is transposed is no matrix.
    """
    kinds = [tensor(kind, label) for kind in inputs]
    one_dtype(label, kinds, FLOAT_DTYPES)
    parts: list[Part] = []
    factors = []
    for number, name in enumerate(("trans_a", "trans_b")):
        factors.append(number)
        if bool_of(attrs, name):
            if kinds[number].rank < 2:
                raise ShapeError(f"{label} takes matrices, not {kinds[number]}")
            factors[-1] = len(inputs) + len(parts)
            parts.append(Part("transpose", (number,), {"perm": last_swapped(kinds[number])}))
    parts.append(Part("matmul", tuple(factors)))
    if attrs["alpha"] != 1.0:
        scale = {"value": float_of(attrs, "alpha")}
        parts.append(Part("smul", (len(inputs) + len(parts) - 1,), scale))
    return parts
