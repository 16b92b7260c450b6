"""Only when it is used, and only once: packages import names on first use, objects keep values."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib import import_module
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


def names_on_first_use(package: str, homes: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a package that imports a name when it is first asked for.

    Args:
        package: its full name.
        homes: the names that each of its modules is the home of.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def get(name: str) -> object:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(f"{package}.{home_of[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
