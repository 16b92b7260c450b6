"""What a wait is worth: when a search ends that may still find something, by what it gains and may gain.

A limit of seconds alone lets a model that takes 0.2 s be searched for 20 s for nothing, and ends a search
that still gains.
"""

from __future__ import annotations

import math
from itertools import pairwise

from relational_tensat.base.deadline import now_s

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
