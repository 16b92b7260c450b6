"""The activations that kernels apply on their way out, as operators."""

from __future__ import annotations

from relational_tensat.rules.targets.fused_kernel import Part
from relational_tensat.tensor import Attrs
from relational_tensat.tensor.operators.activations import NO_ACTIVATION
from relational_tensat.tensor.operators.attributes import str_of

#: By their names in kernels, operators with attributes.
_OPERATORS: dict[str, tuple[str, Attrs]] = {"gelu_tanh": ("gelu", {"approximate": "tanh"})}


def activation_operator(act: str) -> tuple[str, Attrs]:
    """Return the operator, and its attributes, that an activation is apart."""
    return _OPERATORS.get(act, (act, {}))


def activation_part(attrs: Attrs, operand: int) -> Part | None:
    """Return a kernel's activation as one of its parts; None where it has none."""
    act = str_of(attrs, "act")
    if act == NO_ACTIVATION:
        return None
    op, own = activation_operator(act)
    return Part(op, (operand,), own)
