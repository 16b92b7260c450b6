"""Limits within long steps, by one clock: a step asks often whether it may continue; an exception ends it.

The clock is wall seconds, or, for measurements on a busy machine, CPU seconds. Or it stands still: a result
does not depend then on how fast it was found. Some steps on a large e-graph take minutes. Code that sets a
limit catches ``OutOfTimeError``, and continues with the best that was there before.

The worth of a wait, its gain so far and its possible gain, ends a search, too. A limit of seconds alone
lets a model that takes 0.2 s be searched for 20 s for nothing, and ends a search that still gains.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise

from relational_tensat.base.errors import RelationalTensatError

#: Another clock than the wall's.
_clock: Callable[[], float] | None = None


def now_s() -> float:
    """Return seconds, of which only differences mean anything."""
    return time.monotonic() if _clock is None else _clock()


def wall_limit_s(limit_s: float) -> float:
    """Return a limit for what has a wall clock of its own: infinite while another clock counts."""
    return limit_s if _clock is None else math.inf


@contextmanager
def _going_by(clock: Callable[[], float]) -> Iterator[None]:
    global _clock
    before, _clock = _clock, clock
    try:
        yield
    finally:
        _clock = before


def counting_cpu_seconds() -> AbstractContextManager[None]:
    """Let all limits in the block be CPU seconds of this process, all threads together."""
    return _going_by(time.process_time)


def standing_clock() -> AbstractContextManager[None]:
    """Let no limit in the block be met, however long it takes."""
    return _going_by(lambda: 0.0)


Check = Callable[[], None]
"""Asked often in a long step; raises ``OutOfTimeError`` where the step shall end."""

ASKED_EVERY = 256
"""Turns of a cheap loop between two checks."""


class OutOfTimeError(RelationalTensatError):
    """A limit was met within a step; extraction catches it, and has something better to return."""


class BudgetSpentError(OutOfTimeError):
    """A part that can be left out has had its share of the time; the next part has its turn."""


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


#: A second of waiting is worth a graph that is cheaper by this part; less is no gain at all.
WORTH_A_SECOND = LEAST_GAIN = 0.001


class GainPatience:
    """Ends a search in whose second half too little was gained.

    At each moment, the cheapest graph is compared with the one that was known at half the time.
    """

    def __init__(self, original_us: float, least_s: float) -> None:
        """Begin now.

        Args:
            original_us: the cost of the graph that is known.
            least_s: seconds of search after the first graph that is noted, in any case.
        """
        self._started = now_s()
        self._found = [(0.0, original_us)]
        self._least_s = least_s
        self._ends_least_s = 0.0

    def note(self, cost_us: float) -> float:
        """Note a graph; return when, by ``now_s``, the search ends if no cheaper one follows."""
        passed_s = now_s() - self._started
        self._ends_least_s = self._ends_least_s or passed_s + self._least_s
        if cost_us < self._found[-1][1]:
            self._found.append((passed_s, cost_us))
        return self._started + max(self._ends_least_s, self._end_s())

    def _end_s(self) -> float:
        """Return when the gain of the second half is first too small, in seconds since the beginning."""
        _, best_us = self._found[-1]
        for (found_s, cost_us), (next_s, _) in pairwise([*self._found, (math.inf, 0.0)]):
            gain = 1 - best_us / cost_us if cost_us > 0 else 0.0
            worth_s = 2 * gain / WORTH_A_SECOND if gain >= LEAST_GAIN else 0.0
            end_s = max(2 * found_s, worth_s)
            if end_s < 2 * next_s:
                break
        return end_s


class GapPatience:
    """Ends a proof once all that may still be gained is not worth the time that it has taken."""

    def __init__(self, least_s: float) -> None:
        """Begin now.

        Args:
            least_s: it goes on for so long in any case.
        """
        self._started = now_s()
        self._least_s = least_s
        self._gap = math.inf

    def note(self, cost_us: float, bound_us: float) -> None:
        """Note the cheapest graph so far, and that none costs less than the bound."""
        is_known = math.isfinite(cost_us) and math.isfinite(bound_us) and cost_us > 0
        self._gap = 1 - bound_us / cost_us if is_known else math.inf

    def is_over(self) -> bool:
        """Whether waiting is not worth it any more."""
        passed_s = now_s() - self._started
        return passed_s > max(self._least_s, self._gap / WORTH_A_SECOND)
