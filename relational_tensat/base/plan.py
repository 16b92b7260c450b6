"""Plans: generators of calls that one loop makes, so that each call stands few frames below it.

A search of many levels says what is to be done next; the loop at its top does it. Stack traces of a
statement then show who asked for the search, and what the statement is part of.

>>> def plan(count):
...     total = 0
...     for number in range(count):
...         total += yield lambda: number * number
...     return total
>>> carried_out(plan)(4)
14
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar

Given = ParamSpec("Given")
Found = TypeVar("Found")

#: Yields calls, is sent what each returns, and returns what came of them.
Plan: TypeAlias = Generator[Callable[[], object], Any, Found]


def carried_out(make: Callable[Given, Plan[Found]]) -> Callable[Given, Found]:
    """Return a function that carries out a plan and returns what it does.

    An error of a call is raised in the plan, at the place that asked for the call.
    """

    @wraps(make)
    def carry_out(*args: Given.args, **kwargs: Given.kwargs) -> Found:
        plan = make(*args, **kwargs)
        answer, error = None, None
        try:
            while True:
                call = plan.send(answer) if error is None else plan.throw(error)
                answer, error = None, None
                try:
                    answer = call()
                except BaseException as raised:  # Ctrl-C included: the plan undoes its transactions
                    error = raised
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        finally:
            plan.close()

    return carry_out
