"""Only when it is used, and only once: packages import names on first use, objects keep values.

A registry has what implements a protocol, each imported when somebody asks for it by its name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar, cast

from relational_tensat.base.errors import check_choice

_Object = TypeVar("_Object")
_Result = TypeVar("_Result")
_Part = TypeVar("_Part")


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


class Registry(MutableMapping[str, _Part]):
    """The implementations of a protocol, by the names that people choose from.

    Another one comes in with one line, in a program of its own, too:

    >>> GREETINGS: Registry[str] = Registry("greeting", {"english": "string:digits"})
    >>> GREETINGS["danish"] = "goddag"
    >>> list(GREETINGS), GREETINGS["danish"], GREETINGS["english"]
    (['english', 'danish'], 'goddag', '0123456789')
    >>> GREETINGS["dansk"]
    Traceback (most recent call last):
    relational_tensat.base.errors.UsageError: unknown greeting 'dansk', expected one of english, danish; \
did you mean 'danish'?
    """

    def __init__(self, noun: str, homes: Mapping[str, str]) -> None:
        """Take the names that ship.

        Args:
            noun: the word for one of them in messages.
            homes: by name, ``module:object``; a module is imported when its name is first asked for.
        """
        self._noun = noun
        self._homes = dict(homes)
        self._parts: dict[str, _Part] = {}

    def __getitem__(self, name: str) -> _Part:
        """Return what has a name.

        Raises:
            UsageError: nothing has it; names the nearest.
        """
        check_choice(self._noun, name, self)
        if name not in self._parts:
            module, _, attribute = self._homes[name].partition(":")
            self._parts[name] = cast("_Part", getattr(import_module(module), attribute))
        return self._parts[name]

    def __eq__(self, other: object) -> bool:
        return self is other  # comparing contents would import them all

    def __hash__(self) -> int:
        return id(self)

    def __setitem__(self, name: str, part: _Part) -> None:
        self._parts[name] = part

    def __delitem__(self, name: str) -> None:
        self._homes.pop(name, None)
        self._parts.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self._homes or name in self._parts

    def get(self, name: str, default: Any = None) -> Any:
        """Return what has a name, or the default."""
        if name not in self:
            return default
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._homes, **self._parts})

    def __len__(self) -> int:
        return len({**self._homes, **self._parts})
