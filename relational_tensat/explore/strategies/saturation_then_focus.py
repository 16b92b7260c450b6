"""Saturation, and focus after it, where a limit that is not time ended that (``--search auto``).

What saturation found stays: the first graph that focus grows from is the cheapest of its e-graph, and the
last extraction chooses from all that the two have built. So the result costs no more than saturation's.
Focus has the time that is left, and e-nodes of its own beside saturation's. Where iterations ended it with
hardly anything left to do, it first does that (``extend_while_converging``). Where fewer iterations than by
default ended it, nothing goes on: so few were asked for. Where time did, none is left.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore.exploration_options import ExplorationOptions
from relational_tensat.explore.outcome import Exploration, SubgraphReport
from relational_tensat.explore.strategies.saturation import Saturation, join_subgraphs
from relational_tensat.explore.strategies.strategy import SearchSettings
from relational_tensat.rules.model import Rule

#: Fewer iterations were asked for.
DEFAULT_ITERATIONS = ExplorationOptions().iterations


def saturate_then_focus(
    egraph: EGraph,
    rules: Sequence[Rule],
    search: SearchSettings,
) -> Exploration:
    """Grow an e-graph until it is saturated; if a limit of e-nodes or iterations ends that, go on by focus.

    Args:
        search: its ``iterations`` and ``node_limit`` are for saturation, and for each subgraph;
            ``universe_limit`` for what focus builds beside saturation's e-nodes; ``time_limit_s`` for both.

    Raises:
        UnsoundRuleError: as ``explore``.
    """
    options, started_s = search.options, time.perf_counter()
    join_subgraphs(egraph, options)
    saturation = Saturation(egraph, rules, options, search.observer)
    subgraphs: tuple[SubgraphReport, ...] = ()
    with saturation.watching() as guard:
        reason = saturation.grow(guard)
        if reason == "iterations" and _can_go_on(reason, options):
            reason = saturation.extend_while_converging(guard)
        if guard.reason is None and _can_go_on(reason, options):
            from relational_tensat.explore.strategies.focus.focus import search_subgraphs

            reason, subgraphs = search_subgraphs(
                saturation, search, guard, ended=reason, started_s=started_s
            )
    return saturation.finish(reason, subgraphs)


def _can_go_on(reason: str, options: ExplorationOptions) -> bool:
    """Whether saturation ended by a limit that leaves something to do, and subgraphs can be grown."""
    is_limited = reason == "nodes" or (
        reason == "iterations" and options.iterations >= DEFAULT_ITERATIONS
    )
    return is_limited and not options.schedule and options.cycle_filter != "vanilla"
