"""The fields of a JSON object, each of the type that is expected, and none that nothing reads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from relational_tensat.base.errors import InputError, nearest

_REQUIRED: Any = object()


class Fields:
    """An object of a document that people may have edited: what is read of it is checked.

    Args:
        content: what stands there.
        where: what it is, for errors.
        known: the keys that it may have; ``None`` where each is a name.

    Raises:
        InputError: it is no object, or has a key that it cannot have.
    """

    def __init__(self, content: Any, where: str, known: Sequence[str] | None = None) -> None:
        if not isinstance(content, Mapping):
            raise InputError(f"{where}: expected an object, not {_shown(content)}")
        self.where = where
        self._content = content
        for key in content:
            if known is not None and key not in known:
                raise InputError(f"{where}: unknown key {key!r}{nearest(key, known)}")

    def value(self, key: str, default: Any = _REQUIRED) -> Any:
        """Return what stands at a key, whatever it is."""
        if key not in self._content and default is _REQUIRED:
            raise InputError(f"{self.where}: the key {key!r} is missing")
        return self._content.get(key, default)

    def text(self, key: str) -> str:
        """Return a text."""
        value = self.value(key)
        return value if isinstance(value, str) else self._refuse(key, "a text", value)

    def whole(self, key: str) -> int:
        """Return a whole number."""
        value = self.value(key)
        return int(value) if _is_whole(value) else self._refuse(key, "a whole number", value)

    def number(self, key: str) -> float:
        """Return a finite number."""
        value = self.value(key)
        is_number = _is_whole(value) or (isinstance(value, float) and math.isfinite(value))
        return float(value) if is_number else self._refuse(key, "a finite number", value)

    def flag(self, key: str) -> bool:
        """Return true or false, which is meant where there is none."""
        value = self.value(key, False)
        return value if isinstance(value, bool) else self._refuse(key, "true or false", value)

    def items(self, key: str, default: Any = _REQUIRED) -> list[Any]:
        """Return a list."""
        value = self.value(key, default)
        return value if isinstance(value, list) else self._refuse(key, "a list", value)

    def texts(self, key: str, default: Any = _REQUIRED) -> tuple[str, ...]:
        """Return a list of names."""
        values = self.value(key, default)
        if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
            self._refuse(key, "a list of names", values)
        return tuple(values)

    def wholes(self, key: str) -> tuple[int, ...]:
        """Return a list of whole numbers."""
        values = self.value(key)
        if not isinstance(values, list) or not all(map(_is_whole, values)):
            self._refuse(key, "a list of whole numbers", values)
        return tuple(values)

    def _refuse(self, key: str, expected: str, value: Any) -> NoReturn:
        raise InputError(f"{self.where}: {key}: expected {expected}, not {_shown(value)}")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
