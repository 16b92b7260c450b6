"""Checks of values that people choose; each mistake is one line, with the nearest name."""

from __future__ import annotations

import re
from collections.abc import Iterable

from relational_tensat.base.errors import UsageError, nearest

_MEMORY = re.compile(r"\d+(\.\d+)?\s*([KMGT]i?B)", re.IGNORECASE)


def check_choice(noun: str, value: str, choices: Iterable[str]) -> str:
    """Return ``value`` if it is one of the choices.

    Raises:
        UsageError: it is not; names the nearest and all others.
    """
    names = tuple(choices)
    if value not in names:
        raise UsageError(
            f"unknown {noun} {value!r}, expected one of {', '.join(names)}{nearest(value, names)}"
        )
    return value


def check_memory_limit(text: str) -> None:
    """Check that a text is a size as DuckDB reads it.

    Raises:
        UsageError: it is not a number and a unit.
    """
    if not _MEMORY.fullmatch(text.strip()):
        raise UsageError(f"memory_limit = {text!r}, expected a number and a unit, e.g. '2GB'")


def check_at_least(name: str, value: int, least: int) -> None:
    """Check that a value is a whole number, and large enough.

    Raises:
        UsageError: it is not.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UsageError(f"{name} = {value!r}, expected a whole number, at least {least}")
