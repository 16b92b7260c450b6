"""The operators, one description each; importing this package registers them all."""

from relational_tensat.tensor.operators import (
    binary,
    conv,
    conversions,
    elementwise,
    layout,
    leaves,
    matmul,
    norm,
    opaque,
    pieces,
    pool,
    reduce,
    rms_norm,
)
from relational_tensat.tensor.operators.base import (
    ACTIVATIONS,
    Attr,
    Mapped,
    Operator,
    get_operator,
    operators,
    register,
)

#: The files that describe operators, in reading order.
CATALOGUE = (
    leaves,
    elementwise,
    conversions,
    binary,
    matmul,
    conv,
    pool,
    norm,
    rms_norm,
    reduce,
    layout,
    pieces,
    opaque,
)

__all__ = [
    "ACTIVATIONS",
    "CATALOGUE",
    "Attr",
    "Mapped",
    "Operator",
    "get_operator",
    "operators",
    "register",
]
