"""What the snippets of counterexamples are written with: typed tensors and operators on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from relational_tensat.base.errors import UsageError
from relational_tensat.tensor.floats import rounded
from relational_tensat.tensor.machine import computed
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import FLOAT_DTYPES, AttrValue, TensorType, ValueType


@dataclass(frozen=True, slots=True)
class Typed:
    """A value and the type that a graph declares for it; floats are computed in float64.

    Attributes:
        value: an array, or a tuple of arrays.
    """

    type: ValueType
    value: Any


def tensor(dtype: str, shape: Sequence[int], numbers: Sequence[float | bool]) -> Typed:
    """Return a tensor of given elements, in C order.

    Raises:
        UsageError: the numbers do not fill the shape.
    """
    kind = TensorType(dtype, tuple(shape))
    if len(numbers) != kind.size:
        raise UsageError(f"tensor: {len(numbers)} numbers for {kind}, expected {kind.size}")
    numpy_type = "float64" if dtype in FLOAT_DTYPES else "bool" if dtype == "bool" else "int64"
    return Typed(kind, np.array(numbers, dtype=numpy_type).reshape(kind.shape))


def apply(op: str, *operands: Typed, **attrs: AttrValue) -> Typed:
    """Apply an operator.

    Raises:
        ShapeError: it does not take these operands or attributes.
        UsageError: there is no such operator.
    """
    return _apply(
        op, operands, attrs,
        lambda values, kinds, canonical, _: get_operator(op).evaluate_typed(values, kinds, canonical),
    )  # fmt: skip


def tensor_typed(dtype: str, shape: Sequence[int], numbers: Sequence[float | bool]) -> Typed:
    """Return a tensor of given elements as a machine holds it: floats rounded, integers in their type.

    Raises:
        UsageError: the numbers do not fill the shape.
    """
    untyped = tensor(dtype, shape, numbers)
    if dtype in FLOAT_DTYPES:
        return Typed(untyped.type, rounded(untyped.value, dtype))
    return Typed(untyped.type, np.array(numbers).astype(dtype).reshape(tuple(shape)))


def apply_typed(op: str, *operands: Typed, **attrs: AttrValue) -> Typed:
    """Apply an operator as a machine does, in the operands' element types.

    Raises:
        ShapeError: it does not take these operands or attributes.
        UsageError: there is no such operator.
    """
    return _apply(op, operands, attrs, partial(computed, op))


def _apply(
    op: str, operands: Sequence[Typed], attrs: Mapping[str, AttrValue], compute: Callable[..., Any]
) -> Typed:
    """Infer an operator's result and compute it, of values, their types, attributes and its own type."""
    operator = get_operator(op)
    kinds = tuple(operand.type for operand in operands)
    operator.check_arity(len(kinds))
    canonical = operator.canonical(kinds, attrs)
    kind = operator.infer(kinds, canonical)
    values = [operand.value for operand in operands]
    with np.errstate(all="ignore"):
        return Typed(kind, compute(values, kinds, canonical, kind))
