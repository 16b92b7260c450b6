"""What a μGraph computes with: float numbers of some width here, residues in ``mugraph.field``.

An array has axes of the arithmetic's own first (none for numbers), then one per index variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from relational_tensat.tensor import spellings

Elements: TypeAlias = NDArray[Any]


class Arithmetic(Protocol):
    """Sums, products, quotients and functions of arrays; each method broadcasts as NumPy does."""

    #: How many axes an array has before those of index variables.
    own_axes: int

    @property
    def in_block(self) -> Arithmetic:
        """What blocks compute with, of the same elements in device memory."""

    def loaded(self, x: Elements) -> Elements:
        """Return what lies in device memory as a block computes with it."""

    def stored(self, x: Elements, *, is_wide: bool) -> Elements:
        """Return what a block has computed as it lies in device memory."""

    def add(self, a: Elements, b: Elements) -> Elements:
        """Return a + b."""

    def subtract(self, a: Elements, b: Elements) -> Elements:
        """Return a - b."""

    def multiply(self, a: Elements, b: Elements) -> Elements:
        """Return a b."""

    def divide(self, a: Elements, b: Elements) -> Elements:
        """Return a / b; what a zero in b does is the arithmetic's."""

    def divide_or_zero(self, a: Elements, b: Elements) -> Elements:
        """Return a / b, and 0 where b is 0 or NaN."""

    def power(self, a: Elements, b: Elements | float) -> Elements:
        """Return a to the b."""

    def compared(self, name: str, a: Elements, b: Elements | float) -> Elements:
        """Return 1 where a comparison holds (``COMPARISONS``), and 0 elsewhere."""

    def kept(self, condition: Elements, x: Elements, value: float) -> Elements:
        """Return x where the condition is not 0, and a number elsewhere, whatever x is there."""

    def matmul(self, a: Elements, b: Elements) -> Elements:
        """Return the matrix products of the last two axes, the others are a batch."""

    def sum(self, x: Elements, axes: Sequence[int]) -> Elements:
        """Return the sums over axes, which are dropped."""

    def largest(self, x: Elements, axes: Sequence[int]) -> Elements:
        """Return the largest elements over axes, which are dropped; of numbers a finite one at least."""

    def reduce_max(self, x: Elements, axes: Sequence[int]) -> Elements:
        """Return the largest elements over axes, which are dropped, whatever these are."""

    def larger(self, a: Elements, b: Elements) -> Elements:
        """Return the larger elements."""

    def function(self, name: str, x: Elements) -> Elements:
        """Return a function, element by element."""

    def scale(self, x: Elements, factor: float | Fraction) -> Elements:
        """Return x times a number."""

    def shift(self, x: Elements, addend: float) -> Elements:
        """Return x plus a number."""


class Numbers:
    """Floats of one width. Products are summed in float32 at least, as tensor cores do.

    So are all results of a block: they lie in registers, or in shared memory as float32, but for what a
    product reads, which has the model's elements, and what is stored.
    What is too large becomes infinite, and NumPy warns of it unless it is told not to (``evaluate`` does).
    """

    own_axes = 0

    def __init__(self, dtype: str = "float64", factor_dtype: str | None = None) -> None:
        """Begin.

        Args:
            dtype: of all results.
            factor_dtype: of what products read; the same by default.
        """
        self._dtype = np.dtype(dtype)
        self._factor_dtype = np.dtype(factor_dtype or dtype)
        self._sum_dtype = np.promote_types(self._dtype, np.float32)

    @property
    def in_block(self) -> Numbers:
        """Float32 at least."""
        return Numbers(str(self._sum_dtype), str(self._factor_dtype))

    def loaded(self, x: Elements) -> Elements:
        """Return elements of this width."""
        return self._rounded(x)

    def stored(self, x: Elements, *, is_wide: bool) -> Elements:
        """Return it rounded to the width, or, if it is wide, as a block has it."""
        return x if is_wide else self._rounded(x)

    def add(self, a: Elements, b: Elements) -> Elements:
        """Return a + b."""
        return self._rounded(a + b)

    def subtract(self, a: Elements, b: Elements) -> Elements:
        """Return a - b."""
        return self._rounded(a - b)

    def multiply(self, a: Elements, b: Elements) -> Elements:
        """Return a b."""
        return self._rounded(a * b)

    def divide(self, a: Elements, b: Elements) -> Elements:
        """Return a / b; infinite or NaN where b is 0."""
        return self._rounded(a / b)

    def divide_or_zero(self, a: Elements, b: Elements) -> Elements:
        """Return a / b, and 0 where b is 0 or NaN, whatever a is there."""
        return self._rounded(np.where((b == 0) | np.isnan(b), 0, a / b))

    def power(self, a: Elements, b: Elements | float) -> Elements:
        """Return a to the b; NaN where no real number is."""
        return self._rounded(np.power(a, a.dtype.type(b) if isinstance(b, float) else b))

    def compared(self, name: str, a: Elements, b: Elements | float) -> Elements:
        """Return 1 where a comparison holds, and 0 elsewhere, as for NaN."""
        return self._rounded(COMPARISONS[name](a, b))

    def kept(self, condition: Elements, x: Elements, value: float) -> Elements:
        """Return x where the condition is not 0, and a number elsewhere."""
        return self._rounded(np.where(condition != 0, x, value))

    def matmul(self, a: Elements, b: Elements) -> Elements:
        """Return the matrix products of the last two axes."""
        a, b = (
            x.astype(self._factor_dtype, copy=False).astype(self._sum_dtype, copy=False)
            for x in (a, b)
        )
        return self._rounded(np.matmul(a, b))

    def sum(self, x: Elements, axes: Sequence[int]) -> Elements:
        """Return the sums over axes."""
        return self._rounded(np.sum(x, axis=tuple(axes), dtype=self._sum_dtype))

    def largest(self, x: Elements, axes: Sequence[int]) -> Elements:
        """Return the largest elements over axes, the lowest finite number at least.

        Where a mask left nothing but -inf, differences from it are -inf then: exponentials are 0, not NaN.
        """
        lowest = np.finfo(x.dtype).min
        return np.asarray(np.maximum(np.max(x, axis=tuple(axes)), lowest))

    def reduce_max(self, x: Elements, axes: Sequence[int]) -> Elements:
        """Return the largest elements over axes; NaN where one is."""
        return np.asarray(np.max(x, axis=tuple(axes)))

    def larger(self, a: Elements, b: Elements) -> Elements:
        """Return the larger elements; NaN where one is."""
        return np.asarray(np.maximum(a, b))

    def function(self, name: str, x: Elements) -> Elements:
        """Return a function, computed in float32 at least."""
        function = spellings.FUNCTIONS[name].numpy
        assert function is not None
        return self._rounded(function(x.astype(self._sum_dtype)))

    def scale(self, x: Elements, factor: float | Fraction) -> Elements:
        """Return x times a number."""
        return self._rounded(x * x.dtype.type(float(factor)))

    def shift(self, x: Elements, addend: float) -> Elements:
        """Return x plus a number."""
        return self._rounded(x + x.dtype.type(addend))

    def _rounded(self, x: Any) -> Elements:
        return np.asarray(x).astype(self._dtype, copy=False)


#: Comparisons of two elements, and, with a number beside it, of one.
COMPARISONS: dict[str, Any] = {
    name: compare for name, (_, compare) in spellings.COMPARISONS.items()
}

#: The functions of one element that μGraphs have; but for ``square``, ``neg`` and ``reciprocal`` each is
#: opaque to every check: what holds for it holds for any function.
FUNCTIONS = tuple(spellings.FUNCTIONS)
