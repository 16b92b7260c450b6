"""What functions of rules give, as tables of tests have it."""

from __future__ import annotations

from typing import Any

from relational_tensat.rules.functions import get_function


def assert_value(name: str, args: tuple[Any, ...], expected: object) -> None:
    """Fail unless a function takes the arguments, and gives the value in its type."""
    known = get_function(name)
    assert known.takes(len(args))
    assert all(known.check(index)(arg) for index, arg in enumerate(args))
    result = known.call(*args)
    assert result == expected and type(result) is type(expected)
