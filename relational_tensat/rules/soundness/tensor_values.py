"""Random tensors for the variables of a rule: residues, or numbers that suit its operators.

An index has to be on its axis. The numbers that indices are computed from may be anywhere, as long as these
are on theirs: were the i of ``x[|i|]`` always small, nothing would be known of the end of x. So it is drawn
from near and far, and kept if the indices that follow are some.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from relational_tensat.base.errors import ShapeError
from relational_tensat.rules.instance import Instance, TargetNode
from relational_tensat.rules.soundness.draws import RuleConfiguration
from relational_tensat.rules.soundness.sides import has_floats, real
from relational_tensat.tensor.field import PRIME, Undefined
from relational_tensat.tensor.operators import Use, get_operator
from relational_tensat.tensor.types import (
    DTYPE_BYTES,
    Array,
    TensorType,
    ValueType,
    numpy_dtype,
    tensors_of,
)

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


#: Where numbers lie that indices are computed from, and how far apart they are, in sizes of the axis.
_CENTRES = (0.0, 0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 3.0)
_WIDTHS = (0.25, 1.0, 1.0, 2.0, 4.0)
#: Offsets of numbers of 1, 2, 4 and 8 bytes: nothing, or the amount that conversion to fewer bytes takes
#: away.
_TURNS = (0, 0, 1 << 8, 1 << 8, 1 << 16, 0, 1 << 16, 1 << 32)
#: Draws until the indices that follow are some.
_MOST_DRAWS = 12


class Indices:
    """Draws the numbers of one configuration that are positions on an axis, or lead to some."""

    def __init__(
        self, types: Sequence[TensorType], left: Instance, rng: np.random.Generator
    ) -> None:
        self._left, self._rng, self._types = left, rng, types
        self._axes = list(_index_operands(left))
        self.sizes: dict[int, int] = {}
        self._computed: set[int] = set()
        for value, size in self._axes:
            for variable, is_computed in _variables_of(left, len(types), value):
                # sums of two are indices then
                self.sizes[variable] = max(1, size // 2) if is_computed else size
                if is_computed:
                    self._computed.add(variable)
        self._needed = set(_nodes_of(left, len(types), [value for value, _ in self._axes]))
        kinds: list[ValueType] = [types[variable] for variable in self.sizes]
        kinds += [left.nodes[index].type for index in self._needed]
        if any(map(has_floats, kinds)):  # residues stand for them, which have no size
            self._computed.clear()
        self._is_far = False

    def fitting(self, draw: Callable[[], list[Array]]) -> list[Array]:
        """Draw operands until all indices are on their axes: from far away first, then from near zero."""
        self._is_far = True
        for _ in range(_MOST_DRAWS if self._computed else 0):
            operands = draw()
            if self._fit(operands):
                return operands
        self._is_far = False
        return draw()

    def numbers(self, variable: int) -> Array:
        """Draw the numbers of a variable that is in ``sizes``."""
        size, kind = self.sizes[variable], self._types[variable]
        low, high = -size, size
        if self._is_far and variable in self._computed:
            centre, width = self._rng.choice(_CENTRES), self._rng.choice(_WIDTHS)
            low = int((centre - width) * 2 * size) - 1
            high = int((centre + width) * 2 * size) + 2
        if kind.dtype.startswith("u"):
            low, high = max(0, low), max(1, high)
        numbers = self._rng.integers(low, high, size=kind.shape)
        if self._is_far and variable in self._computed:
            numbers += self._rng.choice(_TURNS[: numpy_dtype(kind.dtype).itemsize])
        return numbers

    def _fit(self, operands: Sequence[Any]) -> bool:
        """Whether all indices are on their axes."""
        values: dict[int, Any] = dict(enumerate(operands))
        try:
            for index in sorted(self._needed):
                node = self._left.nodes[index]
                values[len(operands) + index] = real(
                    node, [values[child] for child in node.children]
                )
        except (ShapeError, Undefined):
            return False
        return all(
            np.all((values[value] >= -size) & (values[value] < size)) for value, size in self._axes
        )


def _index_operands(left: Instance) -> Iterator[tuple[int, int]]:
    """Yield the values that index an axis, and the axis's size."""
    for node in left.nodes:
        operator = get_operator(node.op)
        for operand, child in enumerate(node.children):
            if operator.use_of(operand) is Use.INDEX:
                yield child, operator.index_range(node.operand_types, dict(node.attrs))


def _nodes_of(left: Instance, variables: int, values: Sequence[int]) -> Iterator[int]:
    for value in values:
        if value >= variables:
            yield value - variables
            yield from _nodes_of(left, variables, left.nodes[value - variables].children)


def _narrows(node: TargetNode) -> bool:
    """Whether a node converts integers to a type of fewer bytes, where large ones become others."""
    (before, *_), after = tensors_of(node.operand_types[0]), tensors_of(node.type)[0]
    is_fewer = DTYPE_BYTES[after.dtype] < DTYPE_BYTES[before.dtype]
    return node.op == "cast" and is_fewer and not (before.is_float or after.is_float)


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
        moves &= not _narrows(node)
        yield from _variables_of(left, variables, child, is_computed or not moves)
