"""Saturation, and focus after it, for as long as that is worth the wait (``--search auto``).

What saturation found stays: the first graph that focus grows from is the cheapest of its e-graph, and the
last extraction chooses from all that the two have built. So the result costs no more than saturation's.
Focus has e-nodes of its own beside saturation's. Where iterations ended saturation with hardly anything
left to do, it first does that (``Saturation.grow_out``). Three cases end here: the rules have nothing left
to add, fewer iterations than by default were asked for, or the time is over.

Focus ends when it finds nothing more, and after ``GOING_ON_S`` at the latest. ``Patience`` ends it sooner.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from itertools import pairwise

from relational_tensat.base.deadline import now_s
from relational_tensat.base.watch import Guard
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore.exploration_options import ExplorationOptions
from relational_tensat.explore.outcome import Exploration
from relational_tensat.explore.strategies.saturation import Saturation, join_subgraphs
from relational_tensat.explore.strategies.strategy import SearchSettings
from relational_tensat.rules.model import Rule

#: Fewer iterations were asked for.
DEFAULT_ITERATIONS = ExplorationOptions().iterations

#: So many seconds focus has after saturation, or a share of the time limit, where that is more.
GOING_ON_S, _GOING_ON_SHARE = 20.0, 1 / 3

#: A second of waiting is worth a graph that is cheaper by this part; less is no gain at all.
_WORTH_A_SECOND = _LEAST_GAIN = 0.001
#: So long focus may search in any case.
_LEAST_S = 1.0


class Patience:
    """Ends a search in whose second half too little was gained.

    At each moment, the cheapest graph is compared with the one that was known at half the time. So a search
    of 0.2 s is not followed by one of 20 s for nothing, and one that still gains goes on.
    """

    def __init__(self, original_us: float) -> None:
        """Begin now, with the original graph."""
        self._started = now_s()
        self._found = [(0.0, original_us)]
        self._least_s = 0.0

    def note(self, cost_us: float, guard: Guard) -> None:
        """Note a graph; the guard ends the search unless a cheaper one follows in time."""
        passed_s = now_s() - self._started
        self._least_s = self._least_s or passed_s + _LEAST_S
        if cost_us < self._found[-1][1]:
            self._found.append((passed_s, cost_us))
        guard.end_at(self._started + max(self._least_s, self._end_s()), "patience")

    def _end_s(self) -> float:
        """Return when the gain of the second half is first too small, in seconds since the beginning."""
        _, best_us = self._found[-1]
        for (found_s, cost_us), (next_s, _) in pairwise([*self._found, (math.inf, 0.0)]):
            gain = 1 - best_us / cost_us
            worth_s = 2 * gain / _WORTH_A_SECOND if gain >= _LEAST_GAIN else 0.0
            end_s = max(2 * found_s, worth_s)
            if end_s < 2 * next_s:
                break
        return end_s


def explore_and_go_on(
    egraph: EGraph,
    rules: Sequence[Rule],
    search: SearchSettings,
) -> Exploration:
    """Grow an e-graph until it is saturated or a limit ends that; go on by focus.

    Args:
        search: its ``iterations`` and ``node_limit`` are for saturation, and for each subgraph;
            ``universe_limit`` for what focus builds beside saturation's e-nodes; ``time_limit_s`` for both.
            Without one, focus goes on until it finds nothing more.

    Raises:
        UnsoundRuleError: as ``explore``.
    """
    options, started_s = search.options, time.perf_counter()
    join_subgraphs(egraph, options)
    saturation = Saturation(egraph, rules, options, search.observer)
    patience = None if options.time_limit_s is None else Patience(search.chooser.original_us)
    with saturation.watching() as guard:
        reason = saturation.grow(guard)
        if reason == "iterations" and _can_go_on(reason, options):
            reason = saturation.grow_out(guard)
        left_s = guard.seconds_left
    if guard.reason is not None or not _can_go_on(reason, options):
        return saturation.finish(reason)
    from relational_tensat.explore.strategies.focus.focus import search_subgraphs

    if options.time_limit_s is not None:
        left_s = min(left_s, max(GOING_ON_S, _GOING_ON_SHARE * options.time_limit_s))
    with saturation.watching(left_s) as guard:
        noted = (
            None if patience is None else lambda subgraph: patience.note(subgraph.best_us, guard)
        )
        reason, subgraphs = search_subgraphs(
            saturation, search, guard, ended=reason, started_s=started_s, noted=noted
        )
    return saturation.finish(reason, subgraphs)


def _can_go_on(reason: str, options: ExplorationOptions) -> bool:
    """Whether saturation has left something to do, and subgraphs can be grown."""
    has_more = reason in ("saturated", "nodes") or (
        reason == "iterations" and options.iterations >= DEFAULT_ITERATIONS
    )
    return has_more and not options.schedule and options.cycle_filter != "vanilla"
