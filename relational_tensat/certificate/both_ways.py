"""Both sides of steps, and both graphs, computed in float64 on the same inputs and weights."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from relational_tensat.certificate.term_table import AppliedTerm
from relational_tensat.tensor import Array, tensors_of
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import ValueType
from relational_tensat.verify.comparison import as_array, relative_error
from relational_tensat.verify.inputs import RandomWeights
from relational_tensat.verify.unknown_operators import UnknownOperators

#: The arrays of a value: one, or those of a tuple.
_Parts: TypeAlias = tuple[Array, ...]
#: Most bytes of values in memory; others are computed again when they are needed.
_KEPT_BYTES = 1 << 30
#: Differences so much smaller than the operands are rounding, left where large numbers cancel.
_ROUNDING = 1e-11


class ValueTable(Protocol):
    """Terms with their types; ``data`` has what weights hold, of those that it has."""

    @property
    def data(self) -> Mapping[int, Array]:
        """The data of weights, by their terms."""

    def __getitem__(self, term: int) -> AppliedTerm:
        """Return a term."""

    def type(self, term: int) -> ValueType:
        """Return the type of a term."""


class BothWays:
    """The values of terms on some inputs.

    Args:
        inputs: by name, as the model takes them.
        weights: random ones by name, for those that the file gives no data of.
    """

    def __init__(
        self, table: ValueTable, inputs: Mapping[str, Array], weights: RandomWeights
    ) -> None:
        self._table = table
        self._inputs = inputs
        self._weights = weights
        self._equal: dict[int, int] = {}
        self._kept: OrderedDict[int, _Parts] = OrderedDict()
        self._bytes = 0
        self._unknown = UnknownOperators()

    def assume_equal(self, new: int, old: int) -> None:
        """Take one term's value for another's from now on, since all that differs below was compared."""
        first = self._first(old)
        if self._first(new) != first:
            self._equal.setdefault(new, first)

    def difference(
        self, one: int, other: int, operands: Sequence[int] = (), tolerance: float = 0.0
    ) -> float:
        """Return the relative error between two terms; 0 where it is what rounding leaves.

        Args:
            operands: of what is compared; differences are rounding beside large ones.
            tolerance: smaller errors are not asked whether they are rounding.

        Raises:
            InputError: an operator cannot be computed here.
        """
        with np.errstate(all="ignore"):  # what overflows is infinite both ways
            a, b = self._value(one), self._value(other)
            if len(a) != len(b):
                return float("inf")
            errors = [relative_error(x, y) for x, y in zip(a, b, strict=True)]
            if max(errors, default=0.0) <= tolerance:
                return max(errors, default=0.0)
            scale = max(
                (_largest(part) for term in operands for part in self._value(term)), default=0.0
            )
            pairs = zip(a, b, errors, strict=True)
            return max(0.0 if _is_rounding(x, y, scale) else error for x, y, error in pairs)

    def _first(self, term: int) -> int:
        while term in self._equal:
            term = self._equal[term]
        return term

    def _value(self, term: int) -> _Parts:
        local: dict[int, _Parts] = {}
        stack = [self._first(term)]
        while stack:
            current = stack[-1]
            if current not in local and current in self._kept:
                self._kept.move_to_end(current)
                local[current] = self._kept[current]
            if current in local:
                stack.pop()
                continue
            children = [self._first(child) for child in self._table[current].children]
            waiting = [child for child in children if child not in local]
            if waiting:
                stack.extend(waiting)
                continue
            local[current] = value = self._compute(current, [local[child] for child in children])
            self._keep(current, value)
        return local[self._first(term)]

    def _compute(self, term: int, operands: list[_Parts]) -> _Parts:
        op, items, children = self._table[term]
        attrs, kind = dict(items), self._table.type(term)
        if op in ("input", "weight"):
            name = str(attrs["name"])
            data = self._inputs[name] if op == "input" else self._table.data.get(term)
            value = as_array(self._weights[name] if data is None else data)
            (tensor,) = tensors_of(kind)
            return (value.astype("float64") if tensor.is_float else value,)
        types = tuple(self._table.type(child) for child in children)
        given: list[Any] = [
            parts if isinstance(of, tuple) else parts[0]
            for parts, of in zip(operands, types, strict=True)
        ]
        if op == "opaque":
            result = self._unknown.compute(given, types, attrs)
        else:
            result = get_operator(op).evaluate_typed(given, types, attrs)
        parts = result if isinstance(kind, tuple) else (result,)
        return tuple(map(as_array, parts))

    def _keep(self, term: int, value: _Parts) -> None:
        self._kept[term] = value
        self._bytes += _nbytes(value)
        while self._bytes > _KEPT_BYTES and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= _nbytes(oldest)


def _nbytes(value: _Parts) -> int:
    return sum(part.nbytes if any(part.strides) else 0 for part in value)


def _is_rounding(a: Array, b: Array, scale: float) -> bool:
    if a.shape != b.shape or a.dtype.kind != "f" or b.dtype.kind != "f":
        return False
    finite = np.isfinite(a.astype(np.float64))
    apart = np.abs(a.astype(np.float64)[finite] - b.astype(np.float64)[finite])
    same = np.array_equal(a[~finite], b[~finite], equal_nan=True)
    return bool(same and (apart <= _ROUNDING * scale).all())


def _largest(array: Array) -> float:
    if array.dtype.kind != "f" or not array.size:
        return 0.0
    finite = np.abs(array[np.isfinite(array)])
    return float(finite.max()) if finite.size else 0.0
