"""The wire format of protocol buffers, as far as TASO's rule files use it.

A message is a sequence of fields: a key ``number << 3 | type``, then for type 0 an integer of 7 bits
a byte, least significant first, and for type 2 a length and that many bytes (a message again).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from relational_tensat.base.errors import RuleError

_VARINT, _BYTES = 0, 2
_TYPES = {1: "64-bit number", 3: "group", 4: "end of a group", 5: "32-bit number"}
_LONGEST_VARINT_BYTES = 10


@dataclass(frozen=True, slots=True)
class Message:
    """A part of a file, to be read as a message.

    Attributes:
        data: the whole file; the message is ``data[start:end]``.
        where: how errors name the place: the file, and what is read there.
    """

    data: bytes
    start: int
    end: int
    where: str

    def within(self, label: str) -> Message:
        """Return the message; errors in it name this place too."""
        return Message(self.data, self.start, self.end, f"{self.where}: {label}")

    def fail(self, offset: int, reason: str) -> NoReturn:
        """Raise the error for a place in the message.

        Raises:
            RuleError: always.
        """
        raise RuleError(f"{self.where}: byte {offset}: {reason}")

    def fields(self) -> Iterator[tuple[int, int | Message]]:
        """Yield number and value of each field.

        Raises:
            RuleError: the bytes are no message.
        """
        at = self.start
        while at < self.end:
            begin = at
            key, at = self._varint(at)
            number, kind = key >> 3, key & 7
            if kind == _VARINT:
                value, at = self._varint(at)
                yield number, value - (1 << 64) if value >> 63 else value
            elif kind == _BYTES:
                length, at = self._varint(at)
                if at + length > self.end:
                    self.fail(begin, f"{length} bytes announced, but only {self.end - at} follow")
                yield number, Message(self.data, at, at + length, self.where)
                at += length
            else:
                type_text = _TYPES.get(kind, f"field of type {kind}")
                self.fail(begin, f"a {type_text}, expected an integer or a message")

    def split(
        self, integers: dict[int, str], messages: dict[int, str]
    ) -> tuple[dict[str, int], dict[str, list[Message]]]:
        """Return the fields by name: each integer exactly once, each message any number of times.

        Raises:
            RuleError: a field is unknown, of the other kind, missing or doubled.
        """
        values: dict[str, int] = {}
        parts: dict[str, list[Message]] = {name: [] for name in messages.values()}
        for number, value in self.fields():
            if isinstance(value, Message) and number in messages:
                parts[messages[number]].append(value)
            elif isinstance(value, int) and number in integers:
                if integers[number] in values:
                    self.fail(self.start, f"{integers[number]} is given twice")
                values[integers[number]] = value
            else:
                kind = "message" if isinstance(value, Message) else "integer"
                choices = ", ".join(f"{n} ({name})" for n, name in (integers | messages).items())
                self.fail(self.start, f"field {number} holds a {kind}, expected fields {choices}")
        for name in integers.values():
            if name not in values:
                self.fail(self.start, f"{name} is missing")
        return values, parts

    def _varint(self, at: int) -> tuple[int, int]:
        """Return an integer and the offset after it."""
        value = place = 0
        while True:
            if at + place >= self.end:
                self.fail(at, "it ends within a number")
            if place == _LONGEST_VARINT_BYTES:
                self.fail(at, f"a number of more than {_LONGEST_VARINT_BYTES} bytes")
            byte = self.data[at + place]
            value |= (byte & 127) << 7 * place
            place += 1
            if byte < 128:
                return value & (1 << 64) - 1, at + place
