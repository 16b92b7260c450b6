"""Exploring a graph by its recurring blocks.

Each distinct window of two consecutive blocks is explored once, in an e-graph of its own; what was found
is copied to all its places in the e-graph of the whole graph; and that is explored further, until it
has nothing left to add either. What rules find within a window they would have found in the graph, and what
they find across windows is found at last: the same e-graph as without, wherever both are saturated.
Where the windows are not explored to saturation, the whole graph is explored as if it had no blocks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from relational_tensat.egraph.database import Database
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore.checkpoint import Checkpoint
from relational_tensat.explore.exploration_options import ExplorationOptions
from relational_tensat.explore.observer import Observer
from relational_tensat.explore.outcome import Exploration
from relational_tensat.explore.strategies.blocks.report import BlocksReport
from relational_tensat.explore.strategies.saturation import explore
from relational_tensat.rules.model import Rule

#: Blocks are made use of where multi-pattern rules take part in at least so many iterations: with fewer,
#: e-graphs are so small that statements, which are as many for one block as for a hundred, take the time
#: (see bench/README.md).
MANY_MULTI = 3


def explore_blocks(
    egraph: EGraph,
    rules: Sequence[Rule],
    options: ExplorationOptions,
    *,
    observer: Observer | None = None,
    start: Checkpoint | None = None,
    whole: Callable[..., Exploration] = explore,
) -> tuple[Exploration, BlocksReport | None]:
    """Explore an e-graph that holds an original graph and nothing else, by its blocks if it has any.

    Args:
        options: their limits hold for all of it together.
        observer: as ``explore``. In windows, only ``progress`` is called; ``after`` is called for the last
            of their iterations, when that is copied.
        start: where another process left the exploration; what recurs is not looked for then.
        whole: explores the whole graph; has the parameters of ``explore``.

    Returns:
        The exploration, its iterations on windows included; and what was reused, None if nothing was.

    Raises:
        UnsoundRuleError: as ``explore``.
    """
    started = time.perf_counter()
    observer = observer or Observer()
    report = None
    if start is None and _may_pay(options):
        from relational_tensat.explore.strategies.blocks.reusing import (
            Reuse,  # a dozen modules: few runs need them
        )

        reuse = Reuse(egraph, rules, options, observer.progress)
        report = reuse.carry_out(partial(Database, process=egraph.database.process))
        start = reuse.start
        if reuse.stopped is not None:
            observer = replace(observer, after=partial(_always, reuse.stopped))
    limit_s = options.time_limit_s
    if limit_s is not None:
        limit_s = max(limit_s - (time.perf_counter() - started), 0.0)
    exploration = whole(
        egraph,
        rules,
        replace(options, time_limit_s=limit_s),
        observer=observer,
        start=start,
    )
    return replace(exploration, seconds=time.perf_counter() - started), report


def _may_pay(options: ExplorationOptions) -> bool:
    """Whether it is worth looking for blocks that recur."""
    if options.cycle_filter == "none" or options.blocks == "never" or options.schedule:
        return False
    return options.blocks == "always" or options.multi_iterations >= MANY_MULTI


def _always(reason: str, _: int) -> str:
    """Return a reason to stop exploring, whatever the iteration."""
    return reason
