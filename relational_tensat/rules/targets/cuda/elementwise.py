"""Functions of two elements with an activation behind them: one launch of our kernel ``binary``."""

from __future__ import annotations

from relational_tensat.gpu.catalogue import ACTIVATION_CODES, BINARY_CODES
from relational_tensat.rules.targets.cuda.activations import activation_part
from relational_tensat.rules.targets.fused_kernel import FusedKernel, Part, in_turn
from relational_tensat.tensor import Attrs, TensorType
from relational_tensat.tensor.hints import Hints
from relational_tensat.tensor.operators import Attr, get_operator
from relational_tensat.tensor.operators.activations import NO_ACTIVATION
from relational_tensat.tensor.operators.attributes import str_of
from relational_tensat.tensor.operators.base import Types
from relational_tensat.tensor.operators.sampling import PartialApplication


class Elementwise(FusedKernel):
    """act(a op b), operands broadcast."""

    name = "cuda_elementwise"
    arity = (2, 2)
    attrs = (
        Attr("op", "str", choices=tuple(BINARY_CODES)),
        Attr("act", "str", choices=tuple(act for act in ACTIVATION_CODES if act != NO_ACTIVATION)),
    )

    def parts(self, inputs: Types, attrs: Attrs) -> list[Part]:
        """The function of two elements, the activation."""
        return in_turn(Part(str_of(attrs, "op"), (0, 1)), activation_part(attrs, 2))

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        """As a sum's."""
        return get_operator("add").suggest_operand(index, partial, hints)


ELEMENTWISE_KERNELS: tuple[type[FusedKernel], ...] = (Elementwise,)
