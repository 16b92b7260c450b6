"""Random tensors for the variables of a rule: residues, or numbers that suit its operators."""

from __future__ import annotations

import zlib

import numpy as np

from relational_tensat.rules.instance import Instance
from relational_tensat.rules.soundness.draws import RuleConfiguration
from relational_tensat.rules.soundness.indices import Indices
from relational_tensat.tensor.field import PRIME
from relational_tensat.tensor.types import Array, TensorType

#: How float64 operands are drawn: of both signs; small whole numbers, zeros and equal ones among
#: them; above zero (for roots and logarithms); below zero (which hardly any largest element is else).
KINDS = ("normal", "whole", "positive", "negative")
#: Whole numbers drawn for integer tensors, of which even a long product stays far from overflow.
_LARGEST = 5


class Values:
    """Draws the tensors of one configuration."""

    def __init__(self, configuration: RuleConfiguration, left: Instance, seed: int) -> None:
        self._types = configuration.var_types
        self._rng = np.random.default_rng([seed, zlib.crc32(repr(self._types).encode())])
        self._indices = Indices(self._types, left, self._rng)

    def residues(self, zeros: bool = False) -> list[Array]:
        """Draw residues for floats, whole numbers for integers: no zeros, or some on demand."""
        return self._indices.fitting(
            lambda: [self._residues(i, kind, zeros) for i, kind in enumerate(self._types)]
        )

    def reals(self, kind: str) -> list[Array]:
        """Draw float64 numbers for floats, of one of ``KINDS``."""
        return self._indices.fitting(
            lambda: [self._reals(i, tensor_kind, kind) for i, tensor_kind in enumerate(self._types)]
        )

    def counting(self) -> list[Array]:
        """Return the numbers 1, 2, 3, … in all tensors, each continuing where the last one ended."""
        arrays, first = [], 1
        for index, kind in enumerate(self._types):
            numbers = np.arange(first, first + kind.size).reshape(kind.shape)
            first += kind.size
            if index in self._indices.sizes:
                numbers %= self._indices.sizes[index]
            numpy_type = "float64" if kind.is_float else "bool" if kind.dtype == "bool" else "int64"
            arrays.append((numbers % 2 if numpy_type == "bool" else numbers).astype(numpy_type))
        return arrays

    def _residues(self, index: int, kind: TensorType, zeros: bool) -> Array:
        if not kind.is_float or index in self._indices.sizes:
            whole = self._whole(index, kind, "whole" if zeros else "nonzero")
            return np.asarray(whole % PRIME) if kind.is_float else whole
        if not zeros:
            return np.asarray(self._rng.integers(1, PRIME, size=kind.shape))
        sample = self._rng.integers(-PRIME // 4, PRIME, size=kind.shape)
        return np.asarray(np.maximum(sample, 0))

    def _reals(self, index: int, kind: TensorType, how: str) -> Array:
        if not kind.is_float:
            return self._whole(index, kind, how)
        if index in self._indices.sizes:
            return np.asarray(self._whole(index, kind, how), np.float64)
        match how:
            case "whole":
                sample = self._rng.integers(-3, 4, size=kind.shape).astype(np.float64)
            case "positive" | "negative":
                sample = self._rng.uniform(0.25, 2.0, size=kind.shape)
                sample = -sample if how == "negative" else sample
            case _:
                sample = self._rng.normal(size=kind.shape)
        return np.asarray(sample)

    def _whole(self, index: int, kind: TensorType, how: str) -> Array:
        """Integers as int64 whatever their type, so that nothing overflows; booleans.

        Args:
            how: "whole" for any, "positive", or others for no zeros (one would undo every quotient).
        """
        if kind.dtype == "bool":
            return np.asarray(self._rng.integers(0, 2, size=kind.shape).astype(bool))
        if index in self._indices.sizes:
            return np.asarray(self._indices.numbers(index))
        sample = self._rng.integers(0 if how == "whole" else 1, _LARGEST + 1, size=kind.shape)
        if how != "positive" and not kind.dtype.startswith("u"):
            sample = sample * self._rng.choice((-1, 1), size=kind.shape)
        return np.asarray(sample)
