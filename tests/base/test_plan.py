"""Plans: what calls return and raise comes to the plan that asked for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from relational_tensat.base.plan import Plan, carried_out


def test_calls_are_made_in_order_and_their_values_come_back() -> None:
    made: list[int] = []

    def square(number: int) -> int:
        made.append(number)
        return number * number

    def inner(number: int) -> Plan[int]:
        return (yield partial(square, number)) + (yield partial(square, number + 1))

    @carried_out
    def outer(count: int, *, more: int = 0) -> Plan[int]:
        total = more
        for number in range(count):
            total += yield from inner(number)
        return total

    assert outer(2, more=1) == 7
    assert made == [0, 1, 1, 2]


def test_what_a_call_raises_is_raised_in_the_plan() -> None:
    def fail(kind: type[BaseException]) -> None:
        raise kind("here")

    undone: list[str] = []

    @contextmanager
    def transaction() -> Iterator[None]:
        try:
            yield
        except KeyError:
            undone.append("rolled back")
            raise

    @carried_out
    def plan() -> Plan[str]:
        try:
            with transaction():
                yield partial(fail, KeyError)
        except KeyError as error:
            undone.append(str(error))
        yield partial(fail, KeyboardInterrupt)
        return "never"

    with pytest.raises(KeyboardInterrupt, match="here"):
        plan()
    assert undone == ["rolled back", "'here'"]


def test_a_plan_without_calls_returns_its_value() -> None:
    @carried_out
    def nothing() -> Plan[int]:
        yield from ()
        return 7

    assert nothing() == 7
