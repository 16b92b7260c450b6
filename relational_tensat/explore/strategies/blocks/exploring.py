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
from pathlib import Path

from relational_tensat.egraph.database import Database
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore import Exploration, IterationReport, Limits, explore
from relational_tensat.explore.strategies.blocks.report import BlocksReport
from relational_tensat.rules.model import Rule

MODES = ("auto", "always", "never")

#: Blocks are made use of where multi-pattern rules take part in at least so many iterations: with fewer,
#: e-graphs are so small that statements, which are as many for one block as for a hundred, take the time
#: (see bench/README.md).
MANY_MULTI = 3


def explore_blocks(
    egraph: EGraph,
    rules: Sequence[Rule],
    limits: Limits,
    *,
    mode: str = "auto",
    threads: int = 1,
    memory_limit: str | None = None,
    temp_directory: Path | None = None,
    cycle_filter: str = "efficient",
    semi_naive: bool = True,
    progress: Callable[[IterationReport], None] | None = None,
    after: Callable[[int], str | None] | None = None,
) -> tuple[Exploration, BlocksReport | None]:
    """Explore an e-graph that holds an original graph and nothing else, by its blocks if it has any.

    Args:
        limits: hold for all of it together.
        mode: ``auto`` does it where it is worthwhile, ``always`` wherever some block recurs.
        threads, memory_limit, temp_directory: of the database that windows are explored in.
        cycle_filter, semi_naive, progress, after: as ``explore``; ``after`` is not called for iterations
            of exploring windows but for the last one, when that is copied.

    Returns:
        The exploration, its iterations on windows included; and what was reused, None if nothing was.

    Raises:
        UsageError, UnsoundRuleError: as ``explore``.
    """
    started = time.perf_counter()
    start = report = None
    may_pay = mode == "always" or (mode == "auto" and limits.multi_iterations >= MANY_MULTI)
    if may_pay and cycle_filter != "none":
        from relational_tensat.explore.strategies.blocks.reusing import (
            Reuse,  # a dozen modules: few runs need them
        )

        open_database = partial(
            Database, threads=threads, memory_limit=memory_limit, temp_directory=temp_directory
        )
        reuse = Reuse(egraph, rules, limits, cycle_filter, semi_naive, progress)
        report = reuse.carry_out(open_database, always=mode == "always")
        start = reuse.start
        if reuse.stopped is not None:
            after = partial(_always, reuse.stopped)
    seconds = limits.seconds
    if seconds is not None:
        seconds = max(seconds - (time.perf_counter() - started), 0.0)
    exploration = explore(
        egraph,
        rules,
        replace(limits, seconds=seconds),
        cycle_filter=cycle_filter,
        semi_naive=semi_naive,
        progress=progress,
        after=after,
        start=start,
    )
    return replace(exploration, seconds=time.perf_counter() - started), report


def _always(reason: str, _: int) -> str:
    """Return a reason to stop exploring, whatever the iteration."""
    return reason
