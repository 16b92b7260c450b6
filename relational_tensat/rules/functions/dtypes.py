"""Functions of element types, given by name."""

from __future__ import annotations

import math

from relational_tensat.rules.functions.registry import function
from relational_tensat.tensor.floats import integer_range, rounded
from relational_tensat.tensor.types import DTYPE_BYTES, FLOAT_DTYPES

#: Bits of the fraction, the leading one included: whole numbers of so many bits are exact.
_FRACTION_BITS: dict[str, int] = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
#: Per float type, those that have all of its values.
_WIDER_FLOATS = {
    "bfloat16": {"bfloat16", "float32", "float64"},
    "float16": {"float16", "float32", "float64"},
    "float32": {"float32", "float64"},
    "float64": {"float64"},
}


@function("holds-all", "any", "any")
def _holds_all(wide: object, narrow: object) -> bool:
    """Whether an element type has every value of a second one, so that conversion loses nothing."""
    if wide not in DTYPE_BYTES or narrow not in DTYPE_BYTES:
        return False
    if narrow in FLOAT_DTYPES:
        return wide in _WIDER_FLOATS[str(narrow)]
    low, high = integer_range(str(narrow))
    if wide in FLOAT_DTYPES:
        exact = 1 << _FRACTION_BITS[str(wide)]
        return -exact <= low and high <= exact
    wide_low, wide_high = integer_range(str(wide))
    return wide_low <= low and high <= wide_high


@function("has-number", "any", "number")
def _has_number(dtype: object, value: float) -> bool:
    """Whether an element type has a number as it is, not rounded."""
    if dtype in FLOAT_DTYPES:
        return bool(rounded(value, str(dtype)) == value)
    if dtype not in DTYPE_BYTES or value != math.floor(value):
        return False
    low, high = integer_range(str(dtype))
    return bool(low <= value <= high)
