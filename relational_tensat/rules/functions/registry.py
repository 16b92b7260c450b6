"""The registry of the functions that rules may use.

A function is a pure function of attribute values and of the types of tensors. Where it does not
apply (an index out of range, a tuple where a tensor is expected), neither does the rule: no error.
Adding a function is adding one ``@function`` to ``value_functions`` or ``tensor_functions``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from relational_tensat.base.errors import unknown
from relational_tensat.tensor.types import TensorType


class Inapplicable(Exception):  # noqa: N818 - it is no error: the rule just does not apply here
    """A function was given what it is not defined for."""


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


#: Tests of whether a value is of a kind of argument.
_KINDS: dict[str, Callable[[object], bool]] = {
    "any": lambda value: True,
    "bool": lambda value: isinstance(value, bool),
    "int": _is_int,
    "number": lambda value: _is_int(value) or isinstance(value, float),
    "ints": lambda value: isinstance(value, tuple) and all(map(_is_int, value)),
    "tensor": lambda value: isinstance(value, TensorType),
}


@dataclass(frozen=True, slots=True)
class Function:
    """A function that rules may call.

    Attributes:
        params: the kinds of the arguments: tensor, int, number, bool, ints or any; the last one
            ends in ``...`` if it may be repeated.
        lazy: arguments are evaluated only as far as needed (``and``, ``or``, ``if``).
        meaning: one line.
    """

    name: str
    params: tuple[str, ...]
    meaning: str
    call: Callable[..., Any]
    lazy: bool = False

    @property
    def signature(self) -> str:
        """How it is written, e.g. ``(dim tensor int)``."""
        return f"({' '.join((self.name, *self.params))})"

    def takes(self, count: int) -> bool:
        """Whether it can be called with that many arguments."""
        if self.params and self.params[-1].endswith("..."):
            return count >= len(self.params)
        return count == len(self.params)

    def kind(self, index: int) -> str:
        """Return the kind of an argument."""
        return self.params[min(index, len(self.params) - 1)].removesuffix("...")

    def check(self, index: int) -> Callable[[object], bool]:
        """Return what says whether a value is of the kind of an argument."""
        return _KINDS[self.kind(index)]


_FUNCTIONS: dict[str, Function] = {}


def function(
    name: str, *params: str, lazy: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a Python function known to rules; its docstring is the meaning."""

    def add(call: Callable[..., Any]) -> Callable[..., Any]:
        meaning = " ".join((call.__doc__ or "").split())
        _FUNCTIONS[name] = Function(name, params, meaning, call, lazy)
        return call

    return add


def functions() -> dict[str, Function]:
    """Return all functions by name, in the order of this file."""
    return dict(_FUNCTIONS)


def get_function(name: str) -> Function:
    """Return the function of that name.

    Raises:
        UsageError: there is none; names the nearest.
    """
    try:
        return _FUNCTIONS[name]
    except KeyError:
        raise unknown("function", name, _FUNCTIONS) from None
