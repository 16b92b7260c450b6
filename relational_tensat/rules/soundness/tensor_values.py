"""Random tensors for the variables of a rule: residues, or numbers that suit its operators."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np

from relational_tensat.rules.instance import Instance
from relational_tensat.rules.soundness.drawing import Configuration
from relational_tensat.tensor.field import PRIME
from relational_tensat.tensor.operators import Use, get_operator
from relational_tensat.tensor.types import Array, TensorType

#: How float64 operands are drawn: of both signs; small whole numbers, zeros and equal ones among
#: them; above zero (for roots and logarithms); below zero (which hardly any largest element is else).
KINDS = ("normal", "whole", "positive", "negative")
#: Whole numbers drawn for integer tensors, of which even a long product stays far from overflow.
_LARGEST = 5


class Values:
    """Draws the tensors of one configuration."""

    def __init__(self, configuration: Configuration, left: Instance, seed: int) -> None:
        self._types = configuration.var_types
        self._index_ranges = dict(index_ranges(left, len(self._types)))
        self._rng = np.random.default_rng([seed, zlib.crc32(repr(self._types).encode())])

    def residues(self, zeros: bool = False) -> list[Array]:
        """Draw residues for floats, whole numbers for integers: no zeros, or some on demand."""
        return [self._residues(i, kind, zeros) for i, kind in enumerate(self._types)]

    def reals(self, kind: str) -> list[Array]:
        """Draw float64 numbers for floats, of one of ``KINDS``."""
        return [self._reals(i, tensor_kind, kind) for i, tensor_kind in enumerate(self._types)]

    def counting(self) -> list[Array]:
        """Return the numbers 1, 2, 3, … in all tensors, each continuing where the last one ended."""
        arrays, first = [], 1
        for index, kind in enumerate(self._types):
            numbers = np.arange(first, first + kind.size).reshape(kind.shape)
            first += kind.size
            if index in self._index_ranges:
                numbers %= self._index_ranges[index]
            numpy_type = "float64" if kind.is_float else "bool" if kind.dtype == "bool" else "int64"
            arrays.append((numbers % 2 if numpy_type == "bool" else numbers).astype(numpy_type))
        return arrays

    def _residues(self, index: int, kind: TensorType, zeros: bool) -> Array:
        if not kind.is_float or index in self._index_ranges:
            whole = self._whole(index, kind, "whole" if zeros else "nonzero")
            return np.asarray(whole % PRIME) if kind.is_float else whole
        if not zeros:
            return np.asarray(self._rng.integers(1, PRIME, size=kind.shape))
        sample = self._rng.integers(-PRIME // 4, PRIME, size=kind.shape)
        return np.asarray(np.maximum(sample, 0))

    def _reals(self, index: int, kind: TensorType, how: str) -> Array:
        if not kind.is_float:
            return self._whole(index, kind, how)
        if index in self._index_ranges:
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
        if index in self._index_ranges:
            size = self._index_ranges[index]
            return np.asarray(self._rng.integers(-size, size, size=kind.shape))
        sample = self._rng.integers(0 if how == "whole" else 1, _LARGEST + 1, size=kind.shape)
        if how != "positive" and not kind.dtype.startswith("u"):
            sample = sample * self._rng.choice((-1, 1), size=kind.shape)
        return np.asarray(sample)


def index_ranges(left: Instance, variables: int) -> Iterator[tuple[int, int]]:
    """Yield the variables that index an axis, or that indices are computed from, and the axis's size.

    What is computed with, and not only moved or converted, is half as large: sums of two are indices then.
    """
    for node in left.nodes:
        operator = get_operator(node.op)
        for operand, child in enumerate(node.children):
            if operator.use_of(operand) is Use.INDEX:
                size = operator.index_range(node.operand_types, dict(node.attrs))
                for variable, is_computed in _variables_of(left, variables, child):
                    yield variable, max(1, size // 2) if is_computed else size


def _variables_of(
    left: Instance, variables: int, value: int, is_computed: bool = False
) -> Iterator[tuple[int, bool]]:
    """Yield the variables that a value is made of, and whether it is computed from them."""
    if value < variables:
        yield value, is_computed
        return
    node = left.nodes[value - variables]
    operator = get_operator(node.op)
    for operand, child in enumerate(node.children):
        moves = operator.use_of(operand) in (Use.MOVED, Use.JOINED) or node.op == "part"
        yield from _variables_of(left, variables, child, is_computed or not moves)
