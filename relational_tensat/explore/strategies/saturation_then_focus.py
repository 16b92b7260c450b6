"""Saturation, and focus after it, for as long as that is worth the wait (``--search auto``).

What saturation found stays: the first graph that focus grows from is the cheapest of its e-graph, and the
last extraction chooses from all that the two have built. So the result costs no more than saturation's.
Focus has e-nodes of its own beside saturation's. Where iterations ended saturation with hardly anything
left to do, it first does that (``extend_while_converging``). Three cases end here: the rules have nothing
left to add, fewer iterations than by default were asked for, or the time is over.

Focus ends when it finds nothing more, after ``GOING_ON_S`` at the latest, mostly sooner: ``GainPatience``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from relational_tensat.base.deadline import GainPatience
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore.exploration_options import ExplorationOptions
from relational_tensat.explore.outcome import Exploration, SubgraphReport
from relational_tensat.explore.strategies.saturation import Saturation, join_subgraphs
from relational_tensat.explore.strategies.strategy import SearchSettings
from relational_tensat.rules.model import Rule

#: Fewer iterations were asked for.
DEFAULT_ITERATIONS = ExplorationOptions().iterations

#: So many seconds focus has after saturation, or a share of the time limit, where that is more.
GOING_ON_S, _GOING_ON_SHARE = 20.0, 1 / 3

#: So long focus may search in any case, whatever it gains.
LEAST_S = 2.0


def saturate_then_focus(
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
    patience = GainPatience(search.chooser.original_us, LEAST_S)
    with saturation.watching() as guard:
        reason = saturation.grow(guard)
        if reason == "iterations" and _can_go_on(reason, options):
            reason = saturation.extend_while_converging(guard)
        left_s = guard.seconds_left
    if guard.reason is not None or not _can_go_on(reason, options):
        return saturation.finish(reason)
    from relational_tensat.explore.strategies.focus.focus import search_subgraphs

    if options.time_limit_s is not None:
        left_s = min(left_s, max(GOING_ON_S, _GOING_ON_SHARE * options.time_limit_s))
    with saturation.watching(left_s) as guard:

        def noted(subgraph: SubgraphReport) -> None:
            guard.end_at(patience.note(subgraph.best_us), "patience")

        reason, subgraphs = search_subgraphs(
            saturation,
            search,
            guard,
            ended=reason,
            started_s=started_s,
            noted=None if options.time_limit_s is None else noted,
        )
    return saturation.finish(reason, subgraphs)


def _can_go_on(reason: str, options: ExplorationOptions) -> bool:
    """Whether saturation has left something to do, and subgraphs can be grown."""
    has_more = reason in ("saturated", "nodes") or (
        reason == "iterations" and options.iterations >= DEFAULT_ITERATIONS
    )
    return has_more and not options.schedule and options.cycle_filter != "vanilla"
