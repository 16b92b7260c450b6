"""Checked access to parsed JSON: every value has a path, and every message names it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from relational_tensat.base.errors import ModelError, nearest
from relational_tensat.base.records import record

_KINDS: dict[type, str] = {
    dict: "an object",
    list: "an array",
    str: "a string",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    type(None): "null",
}


@record
class JsonPlace:
    """A JSON value, the file that it stands in, and the path to it (``$.nodes[3].attrs``)."""

    value: Any
    where: str
    path: str = "$"

    def fail(self, reason: str) -> NoReturn:
        """Raise ``ModelError`` for this place."""
        raise ModelError(f"{self.where}: {self.path}: {reason}")

    def expected(self, noun: str) -> NoReturn:
        """Raise ``ModelError``: something else stands here."""
        self.fail(f"{self._shown()}, expected {noun}")

    def text(self) -> str:
        """Return the value, which must be a string."""
        if not isinstance(self.value, str):
            self.expected("a string")
        return self.value

    def name(self) -> str:
        """Return the value, which must be a string that is not empty."""
        if not self.text():
            self.expected("a name")
        return self.text()

    def integer(self, minimum: int | None = None) -> int:
        """Return the value, which must be an integer of at least ``minimum``."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int):
            self.expected("an integer")
        if minimum is not None and value < minimum:
            self.expected(f"an integer of at least {minimum}")
        return value

    def items(self) -> list[JsonPlace]:
        """Return the elements of the value, which must be an array."""
        if not isinstance(self.value, list):
            self.expected("an array")
        return [
            JsonPlace(value, self.where, f"{self.path}[{index}]")
            for index, value in enumerate(self.value)
        ]

    def fields(
        self, required: tuple[str, ...] = (), optional: tuple[str, ...] | None = None
    ) -> dict[str, JsonPlace]:
        """Return the members of the value, which must be an object.

        Args:
            required: keys that must be there.
            optional: the only other keys allowed; None allows any.
        """
        if not isinstance(self.value, dict):
            self.expected("an object")
        for key in required:
            if key not in self.value:
                hint = nearest(key, self.value)
                self.fail(f"the key {key!r} is missing{hint}")
        if optional is not None:
            keys = (*required, *optional)
            for key in self.value:
                if key not in keys:
                    self.fail(f"unknown key {key!r}{nearest(key, keys)}")
        return dict(self._members())

    def _members(self) -> Iterator[tuple[str, JsonPlace]]:
        for key, value in self.value.items():
            dotted = f".{key}" if key.isidentifier() else f"[{json.dumps(key)}]"
            yield key, JsonPlace(value, self.where, self.path + dotted)

    def _shown(self) -> str:
        if isinstance(self.value, dict | list):
            return _KINDS[type(self.value)]
        shown = json.dumps(self.value)
        return shown if len(shown) <= 40 else shown[:37] + "..."


def parse_json(data: bytes, where: str | Path) -> JsonPlace:
    """Parse UTF-8 JSON strictly: no key twice in an object, no NaN or Infinity.

    Raises:
        ModelError: names the file, the byte or line, and what is wrong.
    """
    where = str(where)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelError(f"{where}: byte {error.start}: not UTF-8 text") from None

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            keys = [key for key, _ in pairs]
            duplicate = next(key for key in keys if keys.count(key) > 1)
            raise ModelError(f"{where}: the key {duplicate!r} occurs twice in one object")
        return result

    def constant(name: str) -> NoReturn:
        raise ModelError(f'{where}: {name} is not JSON; write the string "inf", "-inf" or "nan"')

    try:
        value = json.loads(text, object_pairs_hook=members, parse_constant=constant)
    except json.JSONDecodeError as error:
        end = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
        reason = "the text ends too early" if end else error.msg
        raise ModelError(
            f"{where}: line {error.lineno} column {error.colno}: not JSON: {reason}"
        ) from None
    except RecursionError:
        raise ModelError(f"{where}: not a model: arrays or objects are nested too deeply") from None
    except ModelError:
        raise
    except ValueError as error:  # an integer of thousands of digits
        raise ModelError(f"{where}: not a model: {error}") from None
    if "\\u" in text:
        _refuse_surrogates(value, where)
    return JsonPlace(value, where)


def _refuse_surrogates(value: Any, where: str) -> None:
    """Refuse half of a surrogate pair: an escape that JSON allows, but no text can have."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise ModelError(f"{where}: a \\u escape is half of a surrogate pair") from None
