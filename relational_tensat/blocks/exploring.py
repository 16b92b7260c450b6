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

from relational_tensat.blocks.copying import copy_found, most_copies
from relational_tensat.blocks.found import Found, WindowsMet, read_found
from relational_tensat.blocks.images import Images, TooHigh, find_images
from relational_tensat.blocks.loaded import LoadedGraph
from relational_tensat.blocks.plan import Plan, make_plan
from relational_tensat.blocks.report import BlocksReport
from relational_tensat.blocks.representative import Representative, build_representative
from relational_tensat.egraph.database import Database, Interrupted, OutOfMemory
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore import Exploration, IterationReport, Limits, explore
from relational_tensat.explore.checkpoint import Checkpoint, write_checkpoint
from relational_tensat.explore.compile import CompiledRules
from relational_tensat.rules.model import Rule

MODES = ("auto", "always", "never")

#: Blocks are made use of where the windows to explore have at most this share of the graph's e-nodes, and
#: multi-pattern rules take part in at least so many iterations: with fewer, e-graphs are so small that
#: statements, which are as many for one block as for a hundred, take the time (see bench/README.md).
MOST_EXPLORED, MANY_MULTI = 0.5, 3

#: Why the exploration of windows may end so that what it found is of use.
_USEFUL = ("saturated", "time", "interrupted")


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
    run = _BlocksRun(egraph, rules, limits, cycle_filter, semi_naive, progress)
    reused = None
    if mode != "never" and cycle_filter != "none":
        open_database = partial(
            Database, threads=threads, memory_limit=memory_limit, temp_directory=temp_directory
        )
        reused = run.reuse(open_database, always=mode == "always")
    exploration = run.explore_rest(after, started)
    return exploration, reused


class _BlocksRun:
    def __init__(
        self,
        egraph: EGraph,
        rules: Sequence[Rule],
        limits: Limits,
        cycle_filter: str,
        semi_naive: bool,
        progress: Callable[[IterationReport], None] | None,
    ) -> None:
        self._egraph = egraph
        self._rules = rules
        self._limits = limits
        self._filter = cycle_filter
        self._semi_naive = semi_naive
        self._progress = progress
        self._start: Checkpoint | None = None
        self._stopped: str | None = None

    def reuse(self, open_database: Callable[[], Database], *, always: bool) -> BlocksReport | None:
        """Explore the windows and copy what was found; None if that was not worthwhile or possible."""
        if not always and self._limits.multi_iterations < MANY_MULTI:
            return None
        graph = LoadedGraph(self._egraph)
        plan = make_plan(graph)
        if plan is None:
            return None
        if not always and plan.explored_nodes > MOST_EXPLORED * len(graph.nodes):
            return None
        database = open_database()
        try:
            representative = build_representative(graph, plan, self._egraph, database)
            return self._reuse(plan, representative)
        finally:
            database.close()

    def explore_rest(
        self, after: Callable[[int], str | None] | None, started: float
    ) -> Exploration:
        """Explore the whole graph, from what was copied on."""
        if self._stopped is not None:
            stopped = self._stopped

            def after(_: int) -> str | None:
                return stopped

        seconds = self._limits.seconds
        if seconds is not None:
            seconds = max(seconds - (time.perf_counter() - started), 0.0)
        found = explore(
            self._egraph,
            self._rules,
            replace(self._limits, seconds=seconds),
            cycle_filter=self._filter,
            semi_naive=self._semi_naive,
            progress=self._progress,
            after=after,
            start=self._start,
        )
        return replace(found, seconds=time.perf_counter() - started)

    def _reuse(self, plan: Plan, representative: Representative) -> BlocksReport | None:
        started = time.perf_counter()
        room = self._limits.e_nodes * plan.explored_nodes // plan.graph_nodes
        if representative.egraph.e_nodes > room:
            return None
        exploration = explore(
            representative.egraph,
            self._rules,
            replace(self._limits, e_nodes=room),
            cycle_filter=self._filter,
            semi_naive=self._semi_naive,
            progress=self._progress,
        )
        explored = time.perf_counter()
        ended_early = exploration.iterations < self._limits.iterations
        if exploration.stop_reason not in _USEFUL or not ended_early:
            return None
        try:
            found = read_found(representative)
            images = find_images(plan, representative, found, self._egraph.next_id)
        except (WindowsMet, TooHigh):
            return None
        most = self._egraph.e_nodes + most_copies(images, representative, found)
        copied = None
        if most <= self._limits.e_nodes:
            copied = self._copy(representative, found, images, exploration)
        if copied is None:
            return None
        if exploration.stop_reason != "saturated":
            self._stopped = exploration.stop_reason
        return BlocksReport(
            blocks=plan.blocks,
            distinct=plan.distinct,
            places=len(plan.windows),
            explored=len(plan.kinds),
            copied=copied,
            explore_s=explored - started,
            copy_s=time.perf_counter() - explored,
        )

    def _copy(
        self,
        representative: Representative,
        found: Found,
        images: Images,
        exploration: Exploration,
    ) -> int | None:
        """Copy in one transaction, and note where exploration is; None if it could not be done."""
        egraph = self._egraph
        compiled = CompiledRules(self._rules)
        try:
            with egraph.transaction():
                copied = copy_found(
                    egraph, representative, found, images, compiled, exploration.iterations
                )
                start = self._checkpoint(compiled, exploration)
                if egraph.database.is_file:
                    write_checkpoint(egraph, start)
        except (WindowsMet, OutOfMemory, Interrupted):
            return None
        self._start = start
        return copied

    def _checkpoint(self, compiled: CompiledRules, exploration: Exploration) -> Checkpoint:
        """Return where exploration is: multi-pattern rules have had their iterations in the windows."""
        now = self._egraph.counters()
        return Checkpoint(
            first_rule=compiled.first,
            iteration=exploration.iterations,
            multi_done=self._limits.multi_iterations,
            next_id=now.next_id,
            clock=now.clock,
            e_nodes=now.e_nodes,
            e_classes=now.e_classes,
            rule_seconds=[exploration.rules[r.rule.name].seconds for r in compiled.rules],
        )
