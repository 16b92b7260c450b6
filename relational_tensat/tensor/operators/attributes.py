"""Attributes of operators: how they are declared, and typed access to normalized ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from relational_tensat.base.errors import ShapeError, nearest
from relational_tensat.base.records import record
from relational_tensat.tensor.types import Attrs, AttrValue

#: No default: the attribute must be given.
REQUIRED: Any = object()


@record
class Attr:
    """One attribute of an operator.

    Attributes:
        kind: int, float, str, bool, ints, floats, dtype, padding ("same", "valid" or the ints
            begin_1..begin_n, end_1..end_n), or any.
        default: the value if it is not given; ``REQUIRED`` if it must be given.
        choices: the values allowed, when they are few.
        samples: values for random applications, each as often as it is listed.
        timed_as: the value under which times are kept, where none changes the time: a name that tells
            e-nodes apart, a number that a kernel only computes with. None where the value matters.
    """

    name: str
    kind: str
    default: Any = REQUIRED
    choices: tuple[AttrValue, ...] = ()
    samples: tuple[AttrValue, ...] = ()
    timed_as: AttrValue | None = None


def normalized(op: str, declared: Mapping[str, Attr], attrs: Attrs) -> dict[str, AttrValue]:
    """Return the attributes complete with defaults, in declared order.

    Args:
        op: the operator's name, for messages.
        declared: its attributes by name.

    Raises:
        ShapeError: one is unknown, missing, or of the wrong kind.
    """
    for key in attrs:
        if key not in declared:
            raise ShapeError(f"{op} has no attribute {key!r}{nearest(key, declared)}")
    return {name: _checked(op, attr, attrs) for name, attr in declared.items()}


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


def padding_of(attrs: Attrs) -> str | tuple[int, ...]:
    """Return the attribute ``pad``."""
    return cast("str | tuple[int, ...]", attrs["pad"])


def _checked(op: str, attr: Attr, attrs: Attrs) -> AttrValue:
    value: Any = attrs.get(attr.name, attr.default)
    if value is REQUIRED:
        raise ShapeError(f"{op} needs the attribute {attr.name!r}")
    fits = _FITS.get(attr.kind)
    if fits is not None and not fits(value):
        raise ShapeError(f"{op}: {attr.name} = {value!r}, expected {attr.kind}")
    if attr.choices and value not in attr.choices:
        choices = ", ".join(map(str, attr.choices))
        hint = nearest(str(value), map(str, attr.choices))
        raise ShapeError(f"{op}: {attr.name} = {value!r}, expected one of {choices}{hint}")
    return cast(AttrValue, value)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_ints(value: Any) -> bool:
    return isinstance(value, tuple) and all(map(_is_int, value))


#: Tests of whether a value is of a kind; all are of ``any``.
_FITS: dict[str, Callable[[Any], bool]] = {
    "int": _is_int,
    "float": _is_number,
    "bool": lambda value: isinstance(value, bool),
    "str": _is_text,
    "dtype": _is_text,
    "ints": _are_ints,
    "floats": lambda value: isinstance(value, tuple) and all(map(_is_number, value)),
    "padding": lambda value: value in ("same", "valid") or _are_ints(value),
}
