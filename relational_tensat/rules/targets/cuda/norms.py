"""Norms of a sum of two tensors, which they add themselves: our kernels ``layer_norm`` and ``rms_norm``."""

from __future__ import annotations

from typing import ClassVar

from relational_tensat.base.errors import ShapeError
from relational_tensat.rules.targets.fused_kernel import FusedKernel, Part
from relational_tensat.tensor import Attrs, TensorType
from relational_tensat.tensor.hints import Hints
from relational_tensat.tensor.operators import Attr, Family, Use, get_operator
from relational_tensat.tensor.operators.base import Types
from relational_tensat.tensor.operators.sampling import PartialApplication


class SkipLayerNorm(FusedKernel):
    """The layer norm of x + skip. Operands x, skip, scale and, if any, bias."""

    name = "cuda_skip_layer_norm"
    computes = Family.NORMALIZATION
    uses = (Use.VALUE, Use.ADDED, Use.MULTIPLIED, Use.ADDED)
    arity = (3, 4)
    attrs = (Attr("axis", "int"), Attr("epsilon", "float", samples=(1e-5,), timed_as=1e-5))
    _norm: ClassVar[str] = "layer_norm"

    def parts(self, inputs: Types, attrs: Attrs) -> list[Part]:
        """Sum, norm."""
        count = len(inputs)
        return [Part("add", (0, 1)), Part(self._norm, (count, *range(2, count)), attrs)]

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
        """As the norm's; what is added is of one type."""
        x, skip, *others = partial.operands
        summand = x or skip
        if index < 2 and isinstance(summand, TensorType):
            return summand
        own = partial._replace(operands=[summand, *others])
        return get_operator(self._norm).suggest_operand(max(index - 1, 0), own, hints)


class SkipRmsNorm(SkipLayerNorm):
    """The root-mean-square norm of x + skip. Operands x, skip, scale."""

    name = "cuda_skip_rms_norm"
    arity = (3, 3)
    _norm = "rms_norm"


NORM_KERNELS: tuple[type[FusedKernel], ...] = (SkipLayerNorm, SkipRmsNorm)
