"""The operators, one description each; importing this package registers them all."""

from relational_tensat.tensor.operators import (
    binary,
    comparison,
    conv,
    conversions,
    elementwise,
    group_norm,
    integer_products,
    layout,
    leaves,
    matmul,
    nonlinearities,
    norm,
    opaque,
    pieces,
    pool,
    quantize,
    reduce,
    transposed_conv,
)
from relational_tensat.tensor.operators.attributes import Attr
from relational_tensat.tensor.operators.base import Operator
from relational_tensat.tensor.operators.onnx_form import Mapped
from relational_tensat.tensor.operators.registry import (
    get_operator,
    map_onnx,
    operators,
    register,
    typed,
)
from relational_tensat.tensor.operators.traits import ACTIVATIONS, Family, Use

#: The files that describe operators, in reading order.
CATALOGUE = (
    leaves,
    nonlinearities,
    elementwise,
    conversions,
    binary,
    comparison,
    matmul,
    conv,
    transposed_conv,
    pool,
    norm,
    group_norm,
    reduce,
    quantize,
    integer_products,
    layout,
    pieces,
    opaque,
)

__all__ = [
    "ACTIVATIONS",
    "CATALOGUE",
    "Attr",
    "Family",
    "Mapped",
    "Operator",
    "Use",
    "get_operator",
    "map_onnx",
    "operators",
    "register",
    "typed",
]
