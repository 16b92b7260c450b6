"""Limits within long steps, by one clock: a step asks often whether it may continue; an exception ends it.

The clock is wall seconds, or, for measurements on a busy machine, CPU seconds. Some steps on a large
e-graph take minutes. Code that sets a limit catches ``OutOfTimeError``, and continues with the best that
was there before.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from relational_tensat.base.errors import RelationalTensatError

_counts_cpu = False


def now_s() -> float:
    """Return seconds, of which only differences mean anything."""
    return time.process_time() if _counts_cpu else time.monotonic()


def wall_limit_s(limit_s: float) -> float:
    """Return a limit for what has a wall clock of its own: infinite while CPU seconds count."""
    return math.inf if _counts_cpu else limit_s


@contextmanager
def counting_cpu_seconds() -> Iterator[None]:
    """Let all limits in the block be CPU seconds of this process, all threads together."""
    global _counts_cpu
    before, _counts_cpu = _counts_cpu, True
    try:
        yield
    finally:
        _counts_cpu = before


Check = Callable[[], None]
"""Asked often in a long step; raises ``OutOfTimeError`` where the step shall end."""

ASKED_EVERY = 256
"""Turns of a cheap loop between two checks."""


class OutOfTimeError(RelationalTensatError):
    """A limit was met within a step; extraction catches it, and has something better to return."""


class BudgetSpentError(OutOfTimeError):
    """What could be done without has had its share of the time; what comes after it has its turn."""


class Budget:
    """A ``Check`` for what is optional: reductions keep an optimum, and so does leaving them out."""

    def __init__(self, check: Check, seconds: float) -> None:
        """Begin now.

        Args:
            check: of the limit that holds whatever the budget is.
            seconds: until it is spent.
        """
        self._check = check
        self._deadline = now_s() + seconds

    def __call__(self) -> None:
        """Raise if the time is over.

        Raises:
            BudgetSpentError: the budget is spent.
            OutOfTimeError: the limit was met.
        """
        self._check()
        if now_s() >= self._deadline:
            raise BudgetSpentError("the time for reductions is over")

    def share(self, fraction: float) -> Budget:
        """Return a budget of a fraction of what is left of this one."""
        return Budget(
            self._check, fraction * max(0.0, self._deadline - now_s())
        )  # ends before this one


def unlimited() -> None:
    """Let a step take as long as it takes."""
