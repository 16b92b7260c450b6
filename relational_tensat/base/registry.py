"""The rooms that implement a protocol, by name: each is imported when it is first asked for.

A room moves in with one line, here or in a program of its own:

>>> GREETINGS: Registry[str] = Registry("greeting", {"english": "string:digits"})
>>> GREETINGS["danish"] = "goddag"
>>> list(GREETINGS), GREETINGS["danish"], GREETINGS["english"]
(['english', 'danish'], 'goddag', '0123456789')
>>> GREETINGS["dansk"]
Traceback (most recent call last):
relational_tensat.base.errors.UsageError: unknown greeting 'dansk', expected one of english, danish; \
did you mean 'danish'?
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Any, TypeVar, cast

from relational_tensat.base.errors import check_choice

_Part = TypeVar("_Part")


class Registry(MutableMapping[str, _Part]):
    """What implements a protocol, by the names that people choose from."""

    def __init__(self, noun: str, homes: Mapping[str, str]) -> None:
        """Take the names that ship.

        Args:
            noun: what one of them is called in messages.
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
