"""A function for each function of conditions and computed values, made when it is first used.

``-`` in a name is ``_`` here, ``and`` is ``and_``; functions that are written with signs (``=``, ``+``) are
operators of ``Value``, and have names, too. Their arguments are in ``fn.pyi``, which ``builder.stubs``
writes.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable

from relational_tensat.base.errors import nearest
from relational_tensat.rules.builder.expressions import Value, call
from relational_tensat.rules.functions import functions

_SIGNS = {
    "=": "eq", "!=": "ne", "<": "lt", "<=": "le", "+": "plus", "-": "minus", "*": "times",
    "//": "floordiv", "/": "divided",
}  # fmt: skip


def python_name(function: str) -> str:
    """Return what a function of the rule language is called here."""
    name = _SIGNS.get(function, function).replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) else name


def __getattr__(name: str) -> Callable[..., Value]:
    by_name = {python_name(function): function for function in functions()}
    if name not in by_name:
        raise AttributeError(f"unknown function {name!r}{nearest(name, by_name)}")

    def function(*arguments: object) -> Value:
        return call(by_name[name], *arguments)

    function.__name__ = function.__qualname__ = name
    return function


def __dir__() -> list[str]:
    return sorted(python_name(function) for function in functions())
