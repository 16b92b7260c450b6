"""The arithmetic of a machine: operator by operator, each result in its own element type.

Integers wrap around and are divided towards zero, in NumPy as in hardware. Floats are computed in
float64 and rounded once: IEEE 754 asks this of every smaller type for sums, products, quotients and roots;
sums of many terms and functions come out as from a machine that computes them well.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol, runtime_checkable

import numpy as np

from relational_tensat.tensor.floats import rounded
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.operators.attributes import float_of
from relational_tensat.tensor.operators.leaves import flatten
from relational_tensat.tensor.types import Attrs, TensorType, ValueType

#: Attributes that are an operand of the operator's own element type in truth.
_NUMBERS = ("value",)


class _Part(Protocol):
    """One operator of several; ``operands`` are numbers of what comes before it."""

    @property
    def op(self) -> str: ...
    @property
    def operands(self) -> Sequence[int]: ...
    @property
    def attrs(self) -> Attrs: ...


@runtime_checkable
class SeveralOperators(Protocol):
    """A kernel that does what several operators do.

    Where its result is of integers, a rounding decides between two of them: each operator rounds then, as a
    file spells them. Kernels of floats round once.
    """

    def typed_parts(
        self, inputs: Sequence[ValueType], attrs: Attrs
    ) -> tuple[Sequence[_Part], Sequence[ValueType]]:
        """Return the operators, and the types of the kernel's operands and of their results, in order."""

    def result(self, values: Sequence[Any], attrs: Attrs) -> Any:
        """Return what the kernel gives, of these operands and results."""


def computed(
    op: str, operands: Sequence[Any], types: Sequence[ValueType], attrs: Attrs, result: ValueType
) -> Any:
    """Apply an operator in machine arithmetic.

    Args:
        operands: floats in float64, rounded to their types; integers and booleans in their own.
        types: of the operands.
        attrs: normalized.
        result: the type of the result.

    Returns:
        An array, floats in float64 and rounded to the result's type; a tuple for a tuple.

    Raises:
        InputError: the operator cannot be computed for these values.
    """
    numbers = dict(attrs)
    for name in _NUMBERS:
        if name in numbers and isinstance(result, TensorType) and result.is_float:
            numbers[name] = rounded(float_of(attrs, name), result.dtype).item()
    operator = get_operator(op)
    is_whole = not isinstance(result, TensorType) or result.is_float
    if operator.may_be_view and operator.is_exact and _has_one_type(types, result):
        return np.asarray(operator.evaluate_typed(operands, tuple(types), numbers))
    if is_whole or not _does_several(type(operator)):
        return held(operator.evaluate_typed(operands, tuple(types), numbers), result)
    assert isinstance(operator, SeveralOperators)
    parts, kinds = operator.typed_parts(types, numbers)
    values = list(flatten(operands))
    for part in parts:
        own_kinds = [kinds[number] for number in part.operands]
        own = [values[number] for number in part.operands]
        values.append(computed(part.op, own, own_kinds, part.attrs, kinds[len(values)]))
    return held(operator.result(values, numbers), result)


@cache
def _does_several(kind: type) -> bool:
    """Whether a class is one of ``SeveralOperators``: to ask a protocol each time takes long."""
    return issubclass(kind, SeveralOperators)


def _has_one_type(operands: Sequence[ValueType], result: ValueType) -> bool:
    """Whether there is one operand, a tensor of the result's element type: moved, it is rounded already."""
    if len(operands) != 1 or not isinstance(result, TensorType):
        return False
    kind = operands[0]
    return isinstance(kind, TensorType) and kind.dtype == result.dtype


def held(value: Any, kind: ValueType) -> Any:
    """Return a value as its type holds it: floats rounded to it; a tuple part by part."""
    if isinstance(kind, TensorType):
        return rounded(value, kind.dtype) if kind.is_float else np.asarray(value)
    return tuple(held(part, part_kind) for part, part_kind in zip(value, kind, strict=True))
