"""The arithmetic of μGraphs, and arrays whose axes have names.

Numbers are floats of some width here, ``residues`` has those of finite fields. An array has axes of the
arithmetic's own first (none for numbers), then one per index variable, and within a kernel per axis of the
grid and for the loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
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
        """The elements that blocks compute with, of the same elements in device memory."""

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
        """Return a / b; the arithmetic decides the meaning of a zero in b."""

    def divide_or_zero(self, a: Elements, b: Elements) -> Elements:
        """Return a / b, and 0 where b is 0 or NaN."""

    def power(self, a: Elements, b: Elements | float) -> Elements:
        """Return a to the b."""

    def compared(self, name: str, a: Elements, b: Elements | float) -> Elements:
        """Return 1 where a comparison holds (``COMPARISONS``), and 0 elsewhere."""

    def kept(self, condition: Elements, x: Elements, value: float) -> Elements:
        """Return x where the condition is not 0, and a number elsewhere, for any x."""

    def matmul(self, a: Elements, b: Elements) -> Elements:
        """Return the matrix products of the last two axes, the others are a batch."""

    def sum(self, x: Elements, axes: Sequence[int]) -> Elements:
        """Return the sums over axes, which are dropped."""

    def largest(self, x: Elements, axes: Sequence[int]) -> Elements:
        """Return the largest elements over axes, which are dropped; of numbers a finite one at least."""

    def reduce_max(self, x: Elements, axes: Sequence[int]) -> Elements:
        """Return the largest elements over axes, which are dropped."""

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

    So are all results of a block: they lie in registers, or in shared memory as float32. Two kinds have the
    model's elements: operands of a product, and stored results. Too large numbers become infinite, and
    NumPy warns of it unless it is told not to (``evaluate`` does).
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
        return self._rounded(x)

    def stored(self, x: Elements, *, is_wide: bool) -> Elements:
        """Return it rounded to the width, or, if it is wide, as a block has it."""
        return x if is_wide else self._rounded(x)

    def add(self, a: Elements, b: Elements) -> Elements:
        return self._rounded(a + b)

    def subtract(self, a: Elements, b: Elements) -> Elements:
        return self._rounded(a - b)

    def multiply(self, a: Elements, b: Elements) -> Elements:
        return self._rounded(a * b)

    def divide(self, a: Elements, b: Elements) -> Elements:
        """Return a / b; infinite or NaN where b is 0."""
        return self._rounded(a / b)

    def divide_or_zero(self, a: Elements, b: Elements) -> Elements:
        """Return a / b, and 0 where b is 0 or NaN, for any a."""
        return self._rounded(np.where((b == 0) | np.isnan(b), 0, a / b))

    def power(self, a: Elements, b: Elements | float) -> Elements:
        """Return a to the b; NaN where no real number is."""
        return self._rounded(np.power(a, a.dtype.type(b) if isinstance(b, float) else b))

    def compared(self, name: str, a: Elements, b: Elements | float) -> Elements:
        """Return 1 where a comparison holds, and 0 elsewhere, as for NaN."""
        return self._rounded(COMPARISONS[name](a, b))

    def kept(self, condition: Elements, x: Elements, value: float) -> Elements:
        return self._rounded(np.where(condition != 0, x, value))

    def matmul(self, a: Elements, b: Elements) -> Elements:
        a, b = (
            x.astype(self._factor_dtype, copy=False).astype(self._sum_dtype, copy=False)
            for x in (a, b)
        )
        return self._rounded(np.matmul(a, b))

    def sum(self, x: Elements, axes: Sequence[int]) -> Elements:
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
        return self._rounded(x * x.dtype.type(float(factor)))

    def shift(self, x: Elements, addend: float) -> Elements:
        return self._rounded(x + x.dtype.type(addend))

    def _rounded(self, x: Any) -> Elements:
        return np.asarray(x).astype(self._dtype, copy=False)


#: Comparisons of two elements, and, with a number beside it, of one.
COMPARISONS: dict[str, Any] = {
    name: compare for name, (_, compare) in spellings.COMPARISONS.items()
}

#: The functions of one element that μGraphs have. But for ``square``, ``neg`` and ``reciprocal``, each is
#: opaque to every check: laws that hold for it hold for any function.
FUNCTIONS = tuple(spellings.FUNCTIONS)


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """An array with a label per axis, after the arithmetic's own axes."""

    labels: tuple[str, ...]
    data: Elements

    @property
    def own_axes(self) -> int:
        """How many axes the arithmetic has for itself."""
        return self.data.ndim - len(self.labels)

    def size(self, label: str) -> int:
        """Return the extent of a label; 1 where it is absent."""
        return self.data.shape[self.axis(label)] if label in self.labels else 1

    def axis(self, label: str) -> int:
        """Return the number of a label's axis."""
        return self.own_axes + self.labels.index(label)

    def axes(self, labels: Iterable[str]) -> tuple[int, ...]:
        """Return the numbers of labels' axes."""
        return tuple(self.axis(label) for label in labels)

    def ordered(self, labels: Sequence[str]) -> Labelled:
        """Return the same elements with axes in this order; absent labels get an axis of size 1."""
        labels = tuple(labels)
        if labels == self.labels:
            return self
        shape, own = self.data.shape, self.own_axes
        axis = {label: own + place for place, label in enumerate(self.labels)}
        present = [axis[label] for label in labels if label in axis]
        sizes = [shape[axis[label]] if label in axis else 1 for label in labels]
        data = self.data.transpose((*range(own), *present))
        return Labelled(labels, data.reshape((*shape[:own], *sizes)))

    def split(self, label: str, parts: Sequence[tuple[str, int]]) -> Labelled:
        """Return the same elements with one axis as several, the slowest first."""
        axis = self.axis(label)
        shape = self.data.shape
        place = self.labels.index(label)
        names = tuple(name for name, _ in parts)
        data = self.data.reshape(*shape[:axis], *(size for _, size in parts), *shape[axis + 1 :])
        return Labelled(self.labels[:place] + names + self.labels[place + 1 :], data)

    def merged(self, labels: Sequence[str], into: str) -> Labelled:
        """Return the same elements with several axes as one, which comes last."""
        kept = [label for label in self.labels if label not in labels]
        moved = self.ordered([*kept, *labels])
        size = math.prod(self.size(label) for label in labels)
        shape = moved.data.shape[: len(moved.data.shape) - len(labels)]
        return Labelled((*kept, into), moved.data.reshape(*shape, size))

    def longer(self, label: str, more: int) -> Labelled:
        """Return the elements with the last one along a label so many times more."""
        axis = self.axis(label)
        last = np.take(self.data, [-1], axis=axis)
        return Labelled(
            self.labels, np.concatenate([self.data, np.repeat(last, more, axis=axis)], axis=axis)
        )

    def cut(self, label: str, size: int) -> Labelled:
        """Return the first elements along a label."""
        first = (slice(None),) * self.axis(label)
        return Labelled(self.labels, self.data[(*first, slice(size))])

    def renamed(self, old: str, new: str) -> Labelled:
        """Return the same elements with another name of an axis."""
        return Labelled(tuple(new if label == old else label for label in self.labels), self.data)

    def repeated(self, label: str, size: int) -> Labelled:
        """Return the elements repeated along a new last axis."""
        data = np.broadcast_to(self.data[..., None], (*self.data.shape, size))
        return Labelled((*self.labels, label), data)


def elementwise(
    apply: Callable[[Elements, Elements], Elements], a: Labelled, b: Labelled
) -> Labelled:
    """Return a function of two arrays, each repeated over the labels that it lacks."""
    longer, shorter = (a, b) if len(a.labels) >= len(b.labels) else (b, a)
    labels = longer.labels + tuple(name for name in shorter.labels if name not in longer.labels)
    return Labelled(labels, apply(a.ordered(labels).data, b.ordered(labels).data))


def contract(arithmetic: Arithmetic, a: Labelled, b: Labelled, over: Sequence[str]) -> Labelled:
    """Return the sums over labels of the products of two arrays that both have them, by one matmul."""
    batch = [label for label in a.labels if label in b.labels and label not in over]
    rows = [label for label in a.labels if label not in b.labels]
    columns = [label for label in b.labels if label not in a.labels]
    left, right = a.ordered([*batch, *rows, *over]), b.ordered([*batch, *over, *columns])
    batch_sizes = [a.size(label) for label in batch]
    row_sizes = [a.size(label) for label in rows]
    column_sizes = [b.size(label) for label in columns]
    inner = math.prod(a.size(label) for label in over)
    own_a, own_b = left.data.shape[: a.own_axes], right.data.shape[: b.own_axes]
    product = arithmetic.matmul(
        left.data.reshape(*own_a, *batch_sizes, math.prod(row_sizes), inner),
        right.data.reshape(*own_b, *batch_sizes, inner, math.prod(column_sizes)),
    )
    data = product.reshape((*own_a, *batch_sizes, *row_sizes, *column_sizes))  # of no axes, too
    return Labelled((*batch, *rows, *columns), data)


def summed(arithmetic: Arithmetic, x: Labelled, over: Sequence[str]) -> Labelled:
    """Return the sums over labels."""
    kept = tuple(label for label in x.labels if label not in over)
    return Labelled(kept, arithmetic.sum(x.data, x.axes(over)))
