"""What the rules find on the windows of recurring blocks, copied to all their places; see ``exploring``."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from relational_tensat.egraph.database import Database, Interrupted, OutOfMemory
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore.checkpoint import Checkpoint, write_checkpoint
from relational_tensat.explore.compile.compiled import CompiledRules
from relational_tensat.explore.exploration_options import ExplorationOptions
from relational_tensat.explore.observer import Observer
from relational_tensat.explore.outcome import Exploration, IterationReport
from relational_tensat.explore.strategies.blocks.copying import copy_windows, most_copies
from relational_tensat.explore.strategies.blocks.images import Images, TooHigh, find_images
from relational_tensat.explore.strategies.blocks.loaded import LoadedGraph
from relational_tensat.explore.strategies.blocks.partition import Plan, make_plan
from relational_tensat.explore.strategies.blocks.report import BlocksReport
from relational_tensat.explore.strategies.blocks.representative import (
    Representative,
    build_representative,
)
from relational_tensat.explore.strategies.blocks.window_rows import (
    WindowRows,
    WindowsMet,
    read_rows,
)
from relational_tensat.explore.strategies.saturation import explore
from relational_tensat.rules.model import Rule

#: Blocks are made use of where the windows to explore have at most this share of the graph's e-nodes.
MOST_EXPLORED = 0.5

#: Why the exploration of windows may end so that what it found is of use.
_USEFUL = ("saturated", "time", "interrupted")


class Reuse:
    """The exploration of a graph's windows, and what is copied of it.

    Attributes:
        start: where exploration of the whole graph resumes; None if nothing was copied.
        stopped: why exploration of the windows ended, if not because there was nothing left to add.
    """

    def __init__(
        self,
        egraph: EGraph,
        rules: Sequence[Rule],
        options: ExplorationOptions,
        progress: Callable[[IterationReport], None] | None,
    ) -> None:
        self._egraph = egraph
        self._rules = rules
        self._options = options
        self._progress = progress
        self.start: Checkpoint | None = None
        self.stopped: str | None = None

    def carry_out(self, open_database: Callable[[], Database]) -> BlocksReport | None:
        """Explore the windows and copy what was found; None if that was not worthwhile or possible."""
        graph = LoadedGraph(self._egraph)
        plan = make_plan(graph)
        if plan is None:
            return None
        is_large = plan.explored_nodes > MOST_EXPLORED * len(graph.nodes)
        if is_large and self._options.blocks != "always":
            return None
        database = open_database()
        try:
            representative = build_representative(graph, plan, self._egraph, database)
            return self._reuse(plan, representative)
        finally:
            database.close()

    def _reuse(self, plan: Plan, representative: Representative) -> BlocksReport | None:
        started = time.perf_counter()
        node_limit = self._options.node_limit * plan.explored_nodes // plan.graph_nodes
        if representative.egraph.e_nodes > node_limit:
            return None
        exploration = explore(
            representative.egraph,
            self._rules,
            replace(self._options, node_limit=node_limit),
            observer=Observer(progress=self._progress),
        )
        explored = time.perf_counter()
        ended_early = exploration.iterations < self._options.iterations
        if exploration.stop_reason not in _USEFUL or not ended_early:
            return None
        try:
            rows = read_rows(representative)
            images = find_images(plan, representative, rows, self._egraph.next_id)
        except (WindowsMet, TooHigh):
            return None
        most = self._egraph.e_nodes + most_copies(images, representative, rows)
        copied = None
        if most <= self._options.node_limit:
            copied = self._copy(representative, rows, images, exploration)
        if copied is None:
            return None
        if exploration.stop_reason != "saturated":
            self.stopped = exploration.stop_reason
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
        rows: WindowRows,
        images: Images,
        exploration: Exploration,
    ) -> int | None:
        """Copy in one transaction, and note where exploration is; None if it could not be done."""
        egraph = self._egraph
        compiled = CompiledRules(self._rules)
        try:
            with egraph.transaction():
                copied = copy_windows(
                    egraph, representative, rows, images, compiled, exploration.iterations
                )
                start = self._checkpoint(compiled, exploration)
                if egraph.database.is_file:
                    write_checkpoint(egraph, start)
        except (WindowsMet, OutOfMemory, Interrupted):
            return None
        self.start = start
        return copied

    def _checkpoint(self, compiled: CompiledRules, exploration: Exploration) -> Checkpoint:
        """Return where exploration is: multi-pattern rules have had their iterations in the windows."""
        counters = self._egraph.counters()
        return Checkpoint(
            first_rule=compiled.first,
            iteration=exploration.iterations,
            multi_done=self._options.multi_iterations,
            next_id=counters.next_id,
            clock=counters.clock,
            e_nodes=counters.e_nodes,
            e_classes=counters.e_classes,
            rule_seconds=[exploration.rules[r.rule.name].seconds for r in compiled.rules],
        )
