"""Saturation, and where a limit that is not time ended it, focus from there.

What saturation found stays: the first graph that focus grows from is the cheapest of its e-graph, and the
last extraction chooses from all that the two have built. So the result costs no more than saturation's.
Focus has the time that is left, and e-nodes of its own beside saturation's. Where iterations ended it with
hardly anything left to do, it first does that (``Saturation.grow_out``). Where fewer iterations than by
default ended it, nothing goes on: so few were asked for. Where time did, none is left.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from relational_tensat.egraph.database import Interrupted, OutOfMemory
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.egraph.published import create_worlds
from relational_tensat.explore.checkpoint import Checkpoint
from relational_tensat.explore.exploration_options import ExplorationOptions
from relational_tensat.explore.members import show_universe
from relational_tensat.explore.observer import Observer
from relational_tensat.explore.outcome import Exploration, WorldReport
from relational_tensat.explore.seed import Chooser
from relational_tensat.explore.strategies.focus.focusing import Focus
from relational_tensat.explore.strategies.focus.worlds import SearchOver, Worlds
from relational_tensat.explore.strategies.saturation import Saturation
from relational_tensat.rules.model import Rule

#: Fewer iterations were asked for.
DEFAULT_ITERATIONS = ExplorationOptions().iterations


def explore_and_go_on(
    egraph: EGraph,
    rules: Sequence[Rule],
    options: ExplorationOptions,
    chooser: Chooser,
    seed: int = 0,
    *,
    observer: Observer | None = None,
    start: Checkpoint | None = None,
) -> Exploration:
    """Grow an e-graph until it is saturated; if a limit of e-nodes or iterations ends that, go on by focus.

    Args:
        options: ``iterations`` and ``node_limit`` are for saturation, and for each world;
            ``universe_limit`` for what focus builds beside saturation's e-nodes; ``time_limit_s`` for both.
        chooser: extracts once saturation has ended by a limit, and from each world.
        seed, observer, start: as ``explore_focus``.

    Raises:
        UnsoundRuleError: as ``explore``.
    """
    observer, started = observer or Observer(), time.perf_counter()
    stored = None if start is None else WorldReport.read(egraph.database) or None
    saturation = Saturation(egraph, rules, options, observer, start)
    worlds: Worlds | None = None
    with saturation.watching() as guard:
        reason = stored[0].stop_reason if stored else saturation.grow(guard)
        if not stored and reason == "iterations" and _can_go_on(reason, options):
            reason = saturation.grow_out(guard)
        if guard.reason is None and _can_go_on(reason, options):
            try:
                if stored is None:
                    seed_graph = chooser.choose(saturation.iteration)
                    with egraph.transaction():
                        create_worlds(egraph.database)
                limit = (stored[0].universe if stored else egraph.e_nodes) + options.universe_limit
                worlds = Worlds(
                    egraph,
                    saturation,
                    chooser,
                    observer.watch,
                    limit,
                    stored,
                    time.perf_counter() - started,
                )
                first = worlds.begin_with(
                    None if stored else seed_graph, options.node_limit, reason
                )
                search = Focus(worlds, options, chooser.original_us, seed, guard, first)
                egraph.is_universe = True
                reason = search.run()
            except SearchOver as over:
                reason = str(over)
            except Interrupted:
                reason = guard.reason or "interrupted"
            except OutOfMemory:
                reason = "memory"
    if egraph.is_universe:
        show_universe(egraph)
    return saturation.finish(reason, () if worlds is None else tuple(worlds.reports))


def _can_go_on(reason: str, options: ExplorationOptions) -> bool:
    """Whether saturation ended by a limit that leaves something to do, and worlds can be grown."""
    is_limited = reason == "nodes" or (
        reason == "iterations" and options.iterations >= DEFAULT_ITERATIONS
    )
    return is_limited and not options.schedule and options.cycle_filter != "vanilla"
