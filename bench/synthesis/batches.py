"""Values of many terms at a time, and their fingerprints.

A batch is one more axis in front of an operator's operands. Whether an operator may be applied to that is
not known of its class: it is tried, on the first rows, and what comes out is compared with the operator on
each row. So an operator that was added yesterday needs no word here; the worst that can happen to it is a
loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.errors import RelationalTensatError, ShapeError
from relational_tensat.tensor.field import PRIME, Field, Undefined
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import AttrItems, AttrValue, TensorType

Batch: TypeAlias = NDArray[Any]
Types: TypeAlias = tuple[TensorType, ...]
#: The operator on a batch: its operands there, whether its attributes move by an axis, and how a result of
#: so many rows is a batch again.
_Lift: TypeAlias = tuple[Callable[[Batch, int, int], Batch], bool, Callable[[Batch, int], Batch]]

#: Two values of float64 are one where they differ by less: absolutely if small, else relatively.
_STEP = 1e-7
#: Boundaries of rounding are moved off the numbers that often come out exactly.
_OFFSET = 0.31415926e-7
_LARGEST = float(2**60)
#: Of the numbers that are drawn: some are beyond the bounds that models clip to, none overflows e^x.
_SCALES = (0.5, 2.5, 7.0)
#: So many rows are computed both ways before a batch is trusted.
_PROBED = 3
_MISFITS = (ValueError, IndexError, TypeError, KeyError, RelationalTensatError, Undefined)


@dataclass
class BatchArithmetic:
    """How values are computed: modulo a prime, which tells formulas apart, or in float64.

    Attributes:
        exact: modulo a prime, functions that are no polynomials being random ones; else in float64, which
            knows laws of real numbers, too.
    """

    exact: bool
    seed: int
    _field: Field = field(init=False)
    _lifts: dict[tuple[str, AttrItems, Types], _Lift | None] = field(init=False)

    def __post_init__(self) -> None:
        self._field = Field(self.seed)
        self._lifts = {}

    def draw(self, kind: TensorType, random: np.random.Generator) -> Batch:
        """Return the value of an input, as a batch of one."""
        shape = (1, *kind.shape)
        if kind.dtype == "bool":
            return random.integers(0, 2, shape).astype(bool)
        if not kind.is_float:
            return random.integers(-9, 10, shape)
        if self.exact:
            return random.integers(1, PRIME, shape)
        return random.choice(_SCALES, shape) * random.standard_normal(shape)

    def constant(self, value: float) -> Batch:
        """Return a number as a batch of one scalar."""
        return np.array([self._field.constant(value) if self.exact else value])

    def apply(
        self, op: str, attrs: AttrItems, types: Types, operands: Sequence[Batch]
    ) -> tuple[tuple[Batch, ...], NDArray[np.bool_]]:
        """Return the results of an operator on batches of operands, and which rows have values.

        Shapes: each operand is ``[B, *types[i].shape]``, each result ``[B, …]``; an operator of several
        results has several.
        """
        rows = len(operands[0])
        try:
            return self._whole(op, attrs, types, operands), np.ones(rows, bool)
        except Undefined:
            if rows == 1:
                return (), np.zeros(1, bool)
        halves = [
            self.apply(op, attrs, types, [operand[part] for operand in operands])
            for part in (slice(rows // 2), slice(rows // 2, None))
        ]
        known = next((results for results, _ in halves if results), ())
        filled = [
            results or [np.zeros((len(valued), *part.shape[1:]), part.dtype) for part in known]
            for results, valued in halves
        ]
        parts = tuple(np.concatenate(pair) for pair in zip(*filled, strict=True))
        return parts, np.concatenate([valued for _, valued in halves])

    def _whole(
        self, op: str, attrs: AttrItems, types: Types, operands: Sequence[Batch]
    ) -> tuple[Batch, ...]:
        if len(operands[0]) < _PROBED:
            return self._row_by_row(op, attrs, types, operands)
        key = op, attrs, types
        if key not in self._lifts:
            self._lifts[key] = self._found_lift(op, attrs, types, operands)
        lift = self._lifts[key]
        if lift is None:
            return self._row_by_row(op, attrs, types, operands)
        return self._lifted(op, lift, attrs, types, operands)

    def _row_by_row(
        self, op: str, attrs: AttrItems, types: Types, operands: Sequence[Batch]
    ) -> tuple[Batch, ...]:
        named = dict(attrs)
        rows = [
            _parts(self._compute(op, [operand[row] for operand in operands], types, named))
            for row in range(len(operands[0]))
        ]
        return tuple(np.stack(part) for part in zip(*rows, strict=True))

    def _lifted(
        self, op: str, lift: _Lift, attrs: AttrItems, types: Types, operands: Sequence[Batch]
    ) -> tuple[Batch, ...]:
        place, moves, restore = lift
        rows = len(operands[0])
        rank = max(kind.rank for kind in types)
        placed = [place(operand, index, rank) for index, operand in enumerate(operands)]
        kinds = tuple(
            kind.with_shape(operand.shape) for kind, operand in zip(types, placed, strict=True)
        )
        named = {name: _moved(name, value, rows) if moves else value for name, value in attrs}
        results = _parts(self._compute(op, placed, kinds, named))
        return tuple(restore(result, rows) for result in results)

    def _found_lift(
        self, op: str, attrs: AttrItems, types: Types, operands: Sequence[Batch]
    ) -> _Lift | None:
        few = [operand[:_PROBED] for operand in operands]
        expected = self._row_by_row(op, attrs, types, few)
        for lift in _LIFTS:
            try:
                found = self._lifted(op, lift, attrs, types, few)
            except _MISFITS:
                continue
            pairs = list(zip(found, expected, strict=False))
            if len(found) == len(expected) and all(_same(a, b) for a, b in pairs):
                return lift
        return None

    def _compute(
        self, op: str, operands: Sequence[Batch], types: Types, attrs: Mapping[str, AttrValue]
    ) -> Any:
        operator = get_operator(op)
        with np.errstate(all="ignore"):
            try:
                if self.exact and any(kind.is_float for kind in types):
                    return operator.evaluate_exact(operands, types, attrs, self._field)
                return operator.evaluate_typed(operands, types, attrs)
            except ShapeError as error:  # an index that no axis has
                raise Undefined from error

    def fingerprints(
        self, values: Batch, kind: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Return a number per row that equal values of a type share, and which rows have one.

        A row without is not finite somewhere: nothing is said of it.

        Args:
            values: ``[B, …]``.
            kind: the number of the values' type.
        """
        flat = values.reshape(len(values), -1)
        fine = np.ones(len(flat), bool)
        if flat.dtype.kind == "f":
            with np.errstate(all="ignore"):
                flat = np.rint((np.arcsinh(flat) + _OFFSET) / _STEP)
            fine = np.asarray((np.abs(flat) < _LARGEST).all(axis=1))  # NaN is not less either
            flat = np.where(fine[:, None], flat, 0)
        places = mixed(
            np.arange(1, flat.shape[1] + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        )
        with np.errstate(over="ignore"):
            sums = mixed(flat.astype(np.int64).view(np.uint64) + places).sum(
                axis=1, dtype=np.uint64
            )
            return mixed(sums ^ np.uint64(kind * 0x1234567 + 7)), fine


def _parts(result: Any) -> tuple[Batch, ...]:
    return tuple(map(np.asarray, result)) if isinstance(result, tuple) else (np.asarray(result),)


def _same(a: Batch, b: Batch) -> bool:
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-12, atol=1e-12, equal_nan=True)


def _levelled(operand: Batch, index: int, rank: int) -> Batch:
    rows, *shape = operand.shape
    return operand.reshape((rows, *(1,) * (rank - len(shape)), *shape))


def _in_first_axis(operand: Batch, index: int, rank: int) -> Batch:
    return operand.reshape((-1, *operand.shape[2:]))


def _out_of_first_axis(result: Batch, rows: int) -> Batch:
    return result.reshape((rows, -1, *result.shape[1:]))


def _in_groups(operand: Batch, index: int, rank: int) -> Batch:
    """Images side by side as channels, their filters below each other."""
    if index:
        return _in_first_axis(operand, index, rank)
    side_by_side = np.moveaxis(operand, 0, 1)
    return side_by_side.reshape((len(side_by_side), -1, *operand.shape[3:]))


def _out_of_groups(result: Batch, rows: int) -> Batch:
    return np.moveaxis(result.reshape((len(result), rows, -1, *result.shape[2:])), 1, 0)


#: Ways in which an operator may take a batch, the usual ones first: as one more axis in front, operands
#: levelled or not, attributes moved or not; as more rows of the first axis; as groups of a convolution.
_LIFTS: tuple[_Lift, ...] = (
    *(
        (place, moves, lambda result, rows: result)
        for place in (_levelled, lambda operand, index, rank: operand)
        for moves in (True, False)
    ),
    (_in_first_axis, False, _out_of_first_axis),
    (_in_groups, False, _out_of_groups),
)


def _moved(name: str, value: AttrValue, rows: int) -> AttrValue:
    """Return an attribute of an operator that has one more axis of so many rows in front."""
    match name, value:
        case "axis", int():
            return value + 1
        case "axes", (*axes,):
            return tuple(axis + 1 for axis in axes)  # type: ignore[operator]
        case "perm", (*axes,):
            return (0, *(axis + 1 for axis in axes))  # type: ignore[operator]
        case "pads", (*pads,):
            half = len(pads) // 2
            return (0, *pads[:half], 0, *pads[half:])
        case "shape", (*sizes,):
            return (rows, *sizes)
    return value


def varies(values: Batch) -> NDArray[np.bool_]:
    """Return which rows of a batch are no constants: what is, says nothing of operands."""
    flat = values.reshape(len(values), -1)
    different: NDArray[np.bool_] = (flat != flat[:, :1]).any(axis=1)
    return different if flat.shape[1] > 1 else np.ones(len(flat), bool)


def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit numbers one to one (the finalizer of SplitMix64, Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return numbers ^ (numbers >> np.uint64(31))
