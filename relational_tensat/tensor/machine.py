"""What a machine computes: operator by operator, each result in its own element type.

Integers wrap around and are divided towards zero, in NumPy as in hardware. Floats are computed in
float64 and rounded once: of sums, products, quotients and roots that is what IEEE 754 asks of every
smaller type; sums of many terms and functions come out as from a machine that computes them well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relational_tensat.tensor.floats import rounded
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.operators.attributes import float_of
from relational_tensat.tensor.types import Attrs, TensorType, ValueType

#: Attributes that are an operand of the operator's own element type in truth.
_NUMBERS = ("value",)


def computed(
    op: str, operands: Sequence[Any], types: Sequence[ValueType], attrs: Attrs, result: ValueType
) -> Any:
    """Apply an operator in machine arithmetic.

    Args:
        operands: floats in float64, rounded to their types; integers and booleans in their own.
        types: of the operands.
        attrs: normalized.
        result: the type of the result.

    Returns:
        An array, floats in float64 and rounded to the result's type; a tuple for a tuple.

    Raises:
        InputError: the operator cannot be computed for these values.
    """
    numbers = dict(attrs)
    for name in _NUMBERS:
        if name in numbers and isinstance(result, TensorType) and result.is_float:
            numbers[name] = rounded(float_of(attrs, name), result.dtype).item()
    value = get_operator(op).evaluate_typed(operands, tuple(types), numbers)
    return held(value, result)


def held(value: Any, kind: ValueType) -> Any:
    """Return a value as its type holds it: floats rounded to it; a tuple part by part."""
    if isinstance(kind, TensorType):
        return rounded(value, kind.dtype) if kind.is_float else np.asarray(value)
    return tuple(held(part, part_kind) for part, part_kind in zip(value, kind, strict=True))
