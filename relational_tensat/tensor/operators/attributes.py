"""Typed access to normalized attributes: ``Operator.normalize`` has checked their kinds."""

from __future__ import annotations

from typing import cast

from relational_tensat.tensor.types import Attrs


def int_of(attrs: Attrs, name: str) -> int:
    """Return an attribute of kind int."""
    return cast(int, attrs[name])


def ints_of(attrs: Attrs, name: str) -> tuple[int, ...]:
    """Return an attribute of kind ints."""
    return cast("tuple[int, ...]", attrs[name])


def float_of(attrs: Attrs, name: str) -> float:
    """Return an attribute of kind float."""
    return float(cast(float, attrs[name]))


def str_of(attrs: Attrs, name: str) -> str:
    """Return an attribute of kind str or dtype."""
    return cast(str, attrs[name])


def bool_of(attrs: Attrs, name: str) -> bool:
    """Return an attribute of kind bool."""
    return cast(bool, attrs[name])


def padding_of(attrs: Attrs, name: str = "pad") -> str | tuple[int, ...]:
    """Return an attribute of kind padding."""
    return cast("str | tuple[int, ...]", attrs[name])
