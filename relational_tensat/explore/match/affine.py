"""Values that are affine in one that is computed at run time: their size, offset and rounding errors."""

from __future__ import annotations

import math
from dataclasses import field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from relational_tensat.base.records import record
from relational_tensat.tensor import Array

Floats: TypeAlias = npt.NDArray[np.float64]

#: Constants that differ from what they meet by a smaller factor than this do no harm.
HARMLESS = 16.0
#: Of larger constants, only the mean and the spread are used, and the size of so many elements.
_FEW = 1 << 16


@record
class Affine:
    """What is known of a value: arrays that broadcast with it.

    Attributes:
        scale: the size of what varies with the inputs.
        offset: what constants alone make of it.
        error: the size of its rounding errors.
        summands, factors: the constants, by name, that are much larger than what they are added to, and
            those that change the scale much.
    """

    scale: Floats = field(default_factory=lambda: np.ones(()))
    offset: Floats = field(default_factory=lambda: np.zeros(()))
    error: Floats = field(default_factory=lambda: np.zeros(()))
    summands: frozenset[str] = frozenset()
    factors: frozenset[str] = frozenset()

    @property
    def size(self) -> float:
        """The size of its largest elements."""
        return float(self.scale.max() + np.abs(self.offset).max())

    def rounded(self, unit: float) -> Affine:
        """Return it rounded once more, by at most ``unit`` of each element."""
        return replace(self, error=self.error + unit * (np.abs(self.offset) + self.scale))

    def plus(self, other: Affine) -> Affine:
        """Return its sum with another value."""
        return Affine(
            self.scale + other.scale,
            self.offset + other.offset,
            self.error + other.error,
            self.summands | other.summands,
            self.factors | other.factors,
        )

    def shifted(self, constant: Floats, name: str) -> Affine:
        """Return it plus a constant of that name."""
        is_heavy = float(np.abs(constant).max()) > HARMLESS * float(self.scale.max())
        summands = self.summands | {name} if is_heavy else self.summands
        return replace(self, offset=self.offset + constant, summands=summands)

    def times(self, factor: Floats, name: str = "") -> Affine:
        """Return it times a constant of that name."""
        size = np.abs(factor)
        is_heavy = float(size.max()) > HARMLESS or float(size.min()) * HARMLESS < 1.0
        return replace(
            self,
            scale=self.scale * size,
            offset=self.offset * factor,
            error=self.error * size,
            factors=self.factors | {name} if is_heavy and name else self.factors,
        )

    def moved(self) -> Affine:
        """Return it with its elements at other places."""
        if max(self.scale.size, self.offset.size, self.error.size) == 1:
            return self
        spread = np.ptp(self.offset)
        return replace(
            self,
            scale=np.asarray(self.scale.max() + spread),
            offset=np.asarray(self.offset.mean()),
            error=np.asarray(self.error.max()),
        )

    def product(self, op: str, matrix: Array, terms: int, unit: float) -> Affine:
        """Return the sums of so many products with a matrix, or with filters."""
        sample = _sample(matrix)
        growth = math.sqrt(terms * float(np.square(sample).mean()))
        scale = np.asarray(growth * self.scale.max())
        error = growth * (self.error.max() + unit * np.abs(self.offset).max())
        if not self.summands:  # the offset is no larger than what varies
            return replace(self, scale=scale, offset=np.zeros(()), error=np.asarray(error))
        offset = _offset_of_product(op, self.offset, matrix.astype(np.float64))
        return replace(self, scale=scale, offset=offset, error=np.asarray(error))


def reduced(constant: Array) -> Floats:
    """Return a constant in float64; its largest element alone where it has many."""
    if constant.size <= _FEW:
        return np.asarray(constant, np.float64)
    if not any(constant.strides):  # one number
        return np.asarray(constant.flat[0], np.float64)
    ends: tuple[Any, Any] = constant.max(), constant.min()
    return np.asarray(max(map(float, ends), key=abs), np.float64)


def _sample(matrix: Array) -> Floats:
    """Return some elements, in no order; nothing is copied for it."""
    if not any(matrix.strides):
        return np.asarray(matrix.flat[0], np.float64)
    elements = matrix.ravel(order="K")
    return elements[:: max(1, elements.size // _FEW)].astype(np.float64)


def _offset_of_product(op: str, offset: Floats, matrix: Floats) -> Floats:
    """Return what a product makes of an offset: of a convolution, inside the image."""
    if op == "matmul":
        rows = matrix.shape[-2]
        per_row = offset.reshape(-1) if offset.size == rows else np.full(rows, offset.mean())
        return np.asarray(per_row @ matrix)
    filters = matrix.reshape(*matrix.shape[:2], -1).sum(axis=2)
    n_channels = filters.shape[1]
    n_groups = offset.size // n_channels if offset.size > 1 else 1
    per_channel = np.broadcast_to(offset.reshape(-1), n_groups * n_channels)
    groups = zip(np.split(filters, n_groups), np.split(per_channel, n_groups), strict=True)
    sums = np.concatenate([part @ channel for part, channel in groups])
    return sums.reshape(-1, *(1,) * (matrix.ndim - 2))
