"""The one hierarchy of errors, and checks of values that people choose.

Each error also is the builtin one that it refines. A message is one line: the fault, its place, and the
expected form, with the nearest name. ``exit_code`` is what the command line returns for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar


class RelationalTensatError(Exception):
    """Base of all errors that this package raises on purpose."""

    exit_code: ClassVar[int] = 1


class UsageError(RelationalTensatError, ValueError):
    """A flag, name or argument that the caller gave is not one that exists."""

    exit_code = 2


class OtherMachineError(UsageError):
    """A machine that measures is of another kind than the one that asks."""


class InputError(RelationalTensatError, ValueError):
    """A file or graph that the caller gave cannot be used."""

    exit_code = 3


class ModelError(InputError):
    """A model file is malformed: names the file, the place in it and the reason."""


class ShapeError(InputError):
    """An operator is applied to operands of shapes or element types that it does not take."""


class RuleError(InputError):
    """A rule file is malformed: names file, line and reason."""


class UnsoundRuleError(RelationalTensatError, ArithmeticError):
    """A rule asked for the union of two classes that differ in shape or element type."""

    exit_code = 3  # the rule file is input


class VerificationError(RelationalTensatError, ArithmeticError):
    """The optimized graph does not compute what the original computes."""

    exit_code = 4


class NotComparedError(VerificationError):
    """No result can be compared with the original: the original does not run."""


class LossError(VerificationError):
    """The optimized graph computes the same, and is larger or slower than the original where it is used."""


class PrecisionError(LossError):
    """The optimized graph computes the same, and is rounded more than the original where it is used."""


class CrossingError(VerificationError):
    """Outputs of integers would depend on other floats than in the original, cut to whole numbers."""


class NoSolutionError(RelationalTensatError, RuntimeError):
    """No graph could be extracted within the limits."""

    exit_code = 5


class MissingDependencyError(RelationalTensatError, ImportError):
    """An optional package is needed for what was asked, and is not installed."""

    exit_code = 2


def first_line(error: Exception) -> str:
    """Return the first line of a library's message; the error's class if the message is empty."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def nearest(name: str, names: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the name that is meant by ``name``, or ``""``."""
    from relational_tensat.base.suggestions import suggestion  # what goes well needs none

    return suggestion(name, tuple(names))


def unknown(noun: str, name: str, names: Iterable[str]) -> UsageError:
    """Return the error for an unknown name, with the nearest known name."""
    return UsageError(f"unknown {noun} {name!r}{nearest(name, names)}")


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
