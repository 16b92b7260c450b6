"""Floating-point formats: the effect of rounding to an element type, and the numbers that it can hold.

``erf`` is the error function of float64 arrays (NumPy has none, and math.erf takes one number).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.records import record
from relational_tensat.tensor.types import FLOAT_DTYPES, Array


@record
class FloatFormat:
    """A binary floating-point format, IEEE 754's or bfloat16.

    Attributes:
        precision: bits of the fraction, the leading one included.
        lowest: the smallest normal number is 2 to the power of this.
        highest: all finite numbers are below 2 to the power of this.
    """

    precision: int
    lowest: int
    highest: int

    @property
    def epsilon(self) -> float:
        """The distance from 1 to the next larger number."""
        return math.ldexp(1.0, 1 - self.precision)

    @property
    def largest(self) -> float:
        """The largest finite number."""
        below_one = 1.0 - math.ldexp(1.0, -self.precision)
        return math.ldexp(below_one, self.highest - 1) * 2.0

    def is_mask(self, numbers: Array) -> Array:
        """Whether numbers are as masks have them: at least a hundredth of the largest, or infinite."""
        large: Array = np.abs(numbers) >= 0.01 * self.largest
        return large

    @property
    def smallest_normal(self) -> float:
        """The smallest number above zero that has the full precision."""
        return math.ldexp(1.0, self.lowest)

    @property
    def smallest(self) -> float:
        """The smallest number above zero."""
        return math.ldexp(1.0, self.lowest + 1 - self.precision)

    @property
    def moderate(self) -> tuple[float, float]:
        """Bounds of the largest element of a moderate tensor.

        A sum with a number below the upper bound keeps half of the bits of a summand of size 1, and a
        few products of such tensors neither overflow nor fall below the normal numbers.
        """
        return math.ldexp(1.0, self.lowest // 3), math.ldexp(1.0, self.precision // 2)


FLOAT_FORMATS = {
    "float64": FloatFormat(53, -1022, 1024),
    "float32": FloatFormat(24, -126, 128),
    "float16": FloatFormat(11, -14, 16),
    "bfloat16": FloatFormat(8, -126, 128),
}


def is_extreme(values: Any, dtype: str) -> bool:
    """Whether constants are so large, so small or so little finite that laws of the reals fail there.

    Zero is not extreme, nor is what is no float: integers compute exactly, wrapping or not.
    """
    if dtype not in FLOAT_DTYPES:
        return False
    low, high = FLOAT_FORMATS[dtype].moderate
    array = np.asarray(values)
    largest = max(float(array.max()), -float(array.min())) if array.size else 0.0
    return largest != 0.0 and not low <= largest <= high  # NaN where an element is


def rounded(array: Any, dtype: str) -> Array:
    """Return float64 numbers rounded to a float type, once, to the nearest (ties to even).

    They stay float64, which has all numbers of the other types. A view of one number stays one.
    """
    values = np.asarray(array, np.float64)
    if dtype == "float64":
        return values
    if values.size > 1 and not any(values.strides):
        return np.broadcast_to(rounded(values[(0,) * values.ndim], dtype), values.shape)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if dtype != "bfloat16":
            return np.asarray(values.astype(dtype).astype(np.float64))
        kind = FLOAT_FORMATS[dtype]
        _, exponents = np.frexp(values)
        last_bit = np.maximum(exponents - kind.precision, kind.lowest + 1 - kind.precision)
        nearest = np.ldexp(np.rint(np.ldexp(values, -last_bit)), last_bit)
        beyond = np.where(np.abs(nearest) > kind.largest, np.copysign(np.inf, values), nearest)
        return np.where(np.isfinite(values), beyond, values)


def integer_range(dtype: str) -> tuple[int, int]:
    """Return the smallest and the largest number of a type that is no float."""
    if dtype == "bool":
        return 0, 1
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def representable(value: float, dtype: str) -> bool:
    """Whether an element type has a number, up to the rounding that all its numbers have.

    A float type has what neither overflows nor falls below its smallest normal number; infinities it
    has. Other types have the whole numbers of their range.
    """
    if dtype in FLOAT_DTYPES:
        kind = FLOAT_FORMATS[dtype]
        size = abs(value)
        return size == 0.0 or size == math.inf or kind.smallest_normal <= size <= kind.largest
    if not math.isfinite(value) or value != math.floor(value):
        return False
    low, high = integer_range(dtype)
    return low <= value <= high


# Rational approximations of Cephes (S. Moshier, ndtr.c), highest power first, near 1e-16 relative:
# erf(x) = x T(x^2) / U(x^2) for |x| <= 1, erf(x) = 1 - exp(-x^2) P(x) / Q(x) above.
_T = (9.60497373987051638749e0, 9.00260197203842689217e1, 2.23200534594684319226e3,
      7.00332514112805075473e3, 5.55923013010394962768e4)  # fmt: skip
_U = (1.0, 3.35617141647503099647e1, 5.21357949780152679795e2, 4.59432382970980127987e3,
      2.26290000613890934246e4, 4.92673942608635921086e4)  # fmt: skip
_P = (2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687e0,
      4.86371970985681366614e1, 1.96520832956077098242e2, 5.26445194995477358631e2,
      9.34528527171957607540e2, 1.02755188689515710272e3, 5.57535335369399327526e2)  # fmt: skip
_Q = (1.0, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2,
      9.75708501743205489753e2, 1.82390916687909736289e3, 2.24633760818710981792e3,
      1.65666309194161350182e3, 5.57535340817727675546e2)  # fmt: skip
_ONE_FROM = 6.0  # 1 - erf(6) < 2^-53
#: So many at a time: what is between stays in the caches, which takes a quarter of the time.
_BLOCK = 1 << 14


def erf(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the error function of every element, to about 1e-15 relative."""
    if x.size <= _BLOCK:
        return _erf(x)
    given = np.ravel(x)
    found = np.empty_like(given)
    for start in range(0, given.size, _BLOCK):
        found[start : start + _BLOCK] = _erf(given[start : start + _BLOCK])
    return found.reshape(x.shape)


def _erf(x: NDArray[np.float64]) -> NDArray[np.float64]:
    size = np.minimum(np.abs(x), _ONE_FROM)
    square = size * size
    near = size * np.polyval(_T, square) / np.polyval(_U, square)
    far = 1.0 - np.exp(-square) * np.polyval(_P, size) / np.polyval(_Q, size)
    return np.copysign(np.where(size <= 1.0, near, far), x)
