"""What is computed of an object once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

_Object = TypeVar("_Object")
_Result = TypeVar("_Result")


def once_per_object(compute: Callable[[_Object], _Result]) -> Callable[[_Object], _Result]:
    """Decorator: remember what is computed of an object, by its identity.

    For objects that never change and whose hash would take longer than what is computed, as rules are.
    Each is kept from then on, so that its identity stays its own.
    """
    known: dict[int, tuple[_Object, _Result]] = {}

    @wraps(compute)
    def remembered(value: _Object) -> _Result:
        entry = known.get(id(value))
        if entry is None:
            entry = known[id(value)] = (value, compute(value))
        return entry[1]

    return remembered
