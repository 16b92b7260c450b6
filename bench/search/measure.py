"""One measured search: a model explored and extracted from, by saturation or over worlds."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from bench.common.reference import join_ms
from bench.tensat.measure import stopwatch
from relational_tensat.base.process import ProcessOptions
from relational_tensat.base.watch import Watch
from relational_tensat.cost import Profile
from relational_tensat.egraph import EGraph
from relational_tensat.explore import Exploration, ExplorationOptions, explore
from relational_tensat.explore.focus_options import FocusOptions
from relational_tensat.explore.observer import Observer
from relational_tensat.explore.strategies.backtracking import backtrack
from relational_tensat.explore.strategies.best_first import explore_best_first
from relational_tensat.explore.strategies.focus import explore_and_go_on, explore_focus
from relational_tensat.explore.strategies.mcts.deciding import explore_tree
from relational_tensat.explore.strategies.mcts.tree_options import TreeOptions
from relational_tensat.extract import Extraction, ExtractionOptions
from relational_tensat.extract.anytime import AnytimeExtractor, ExtractionEntry
from relational_tensat.rules.model import Rule
from relational_tensat.run.progress import Silent
from relational_tensat.tensor import Graph

#: What is compared: values of ``--search``, and TASO's search on graphs.
SEARCHES = ("saturation", "auto", "focus", "best-first", "mcts", "backtracking")

#: Of graphs that backtracking rewrites: only its time ends it.
_MANY = 1_000_000

#: Which graphs backtracking looks at: as TASO's authors had it, those up to 5 % dearer than the best.
_ALPHA = 1.05


@dataclass(frozen=True, slots=True)
class Limits:
    """What runs are compared at.

    Attributes:
        k_multi: iterations with multi-pattern rules, of saturation or of each world.
        node_limit: of the e-graph, or of the widest worlds.
        cpu_s: CPU seconds after which no other iteration is begun; None: no such limit.
    """

    k_multi: int
    node_limit: int
    cpu_s: float | None = None


@dataclass(frozen=True, slots=True)
class SearchRun:
    """What was measured. The attributes are keys of the results that the bench writes.

    Attributes:
        search: one of ``SEARCHES``.
        k_multi: in how many iterations of an e-graph, or of a world, multi-pattern rules took part.
        node_limit: of the e-graph, or of the widest worlds; nothing to backtracking, which has no e-graph.
        cpu_limit_s: CPU seconds after which no other iteration is begun; None: no such limit.
        seed: of what is drawn at random.
        e_nodes: of the e-graph, or of all worlds together.
        worlds: how many were grown; 0 for saturation.
        cost_before_us, cost_after_us: of the model and of the cheapest graph found.
        bound_us: no graph of that e-graph costs less.
        cpu_s: CPU seconds of this process, all threads, from the graph in memory to the final extraction.
        best_s: wall seconds until the first world had a graph as cheap as the cheapest of any; 0 for
            saturation, which has none before the end.
        join_ms: how fast the machine was just before (``bench.common.reference``).
        moments: when the cheapest graph so far got cheaper: CPU seconds, its cost, e-nodes then.
    """

    model: str
    search: str
    k_multi: int
    node_limit: int
    e_nodes: int
    worlds: int
    iterations: int
    stop_reason: str
    cost_before_us: float
    cost_after_us: float
    bound_us: float
    cpu_s: float
    wall_s: float
    best_s: float
    join_ms: float
    cpu_limit_s: float | None = None
    seed: int = 0
    moments: tuple[tuple[float, float, int], ...] = ()

    def cost_at_us(self, cpu_s: float) -> float:
        """Return what the cheapest graph cost after so many CPU seconds."""
        known = [cost_us for at_s, cost_us, _ in self.moments if at_s <= cpu_s]
        return min([self.cost_before_us, *known])


class _Moments(Silent):
    """Notes when the cheapest graph got cheaper."""

    def __init__(self, egraph: EGraph) -> None:
        self.found: list[tuple[float, float, int]] = []
        self._egraph = egraph
        self._started_s = time.process_time()

    def extracted(self, entry: ExtractionEntry) -> None:
        self.note(entry.best_us)

    def note(self, best_us: float) -> None:
        """Note what the cheapest graph costs now."""
        if not self.found or best_us < self.found[-1][1] * (1 - 1e-9):
            at_s = time.process_time() - self._started_s
            self.found.append((round(at_s, 3), best_us, self._egraph.e_nodes))


def measure(
    graph: Graph,
    search: str,
    limits: ExplorationOptions,
    extraction_options: ExtractionOptions,
    rules: Sequence[Rule],
    profile: Profile,
    cpu_limit_s: float | None = None,
    seed: int = 0,
) -> SearchRun:
    """Search one model with one thread.

    Args:
        limits: of saturation, and of worlds; ``search`` is not looked at.
        cpu_limit_s: after so many CPU seconds no other iteration is begun, whatever time limit ``limits``
            have. What is then extracted from is extracted from whole.
    """
    if cpu_limit_s is not None:
        limits = replace(limits, time_limit_s=None)
    if search == "backtracking":
        return _backtracked(graph, limits, rules, profile, cpu_limit_s)
    reference_ms = join_ms()
    gc.collect()  # what earlier runs left behind is not this one's
    with stopwatch() as watch, closing(EGraph.create(graph)) as egraph:
        moments = _Moments(egraph)
        extractor = AnytimeExtractor(egraph, profile, extraction_options, ProcessOptions(), moments)
        ends = _ends_after(cpu_limit_s)
        observer = Observer(after=ends, watch=extractor.watch)
        if search == "saturation":
            exploration = explore(egraph, rules, limits, observer=observer)
        elif search == "auto":
            exploration = explore_and_go_on(
                egraph, rules, limits, extractor, FocusOptions(), seed, observer=observer
            )
        elif search == "best-first":
            exploration = explore_best_first(
                egraph, rules, limits, extractor, seed=seed, observer=observer
            )
        elif search == "mcts":  # a decision may take longer than the time that there is
            over = None if ends is None else lambda: ends(0) is not None
            exploration = explore_tree(
                egraph,
                rules,
                replace(limits, world_nodes=limits.node_limit),
                TreeOptions(),
                extractor,
                seed=seed,
                observer=Observer(watch=Watch(should_stop=over)),
            )
        else:
            options = replace(limits, search=search)
            exploration = explore_focus(egraph, rules, options, extractor, observer, seed=seed)
        extraction = extractor.finish(exploration.iterations)
        moments.note(extraction.cost_us)
        e_nodes, _ = egraph.counts()
    return SearchRun(
        model=graph.name,
        search=search,
        k_multi=limits.multi_iterations,
        node_limit=limits.node_limit,
        e_nodes=e_nodes,
        worlds=len(exploration.worlds),
        iterations=exploration.iterations,
        stop_reason=exploration.stop_reason,
        cost_before_us=extractor.original_us,
        cost_after_us=extraction.cost_us,
        bound_us=extraction.bound_us,
        cpu_s=watch.cpu_s,
        wall_s=watch.wall_s,
        best_s=_best_s(exploration, extraction),
        join_ms=reference_ms,
        cpu_limit_s=cpu_limit_s,
        seed=seed,
        moments=tuple(moments.found),
    )


def _ends_after(cpu_limit_s: float | None) -> Callable[[int], str | None] | None:
    """Return what ends an exploration after so many CPU seconds from now."""
    if cpu_limit_s is None:
        return None
    end_s = time.process_time() + cpu_limit_s
    return lambda _: "time" if time.process_time() >= end_s else None


def _backtracked(
    graph: Graph,
    limits: ExplorationOptions,
    rules: Sequence[Rule],
    profile: Profile,
    cpu_limit_s: float | None,
) -> SearchRun:
    """Search by TASO's backtracking, of which only the time is limited."""
    reference_ms = join_ms()
    gc.collect()
    limit_s = limits.time_limit_s if cpu_limit_s is None else cpu_limit_s
    with stopwatch() as watch:
        outcome = backtrack(graph, rules, profile, alpha=_ALPHA, budget=_MANY, time_limit_s=limit_s)
    return SearchRun(
        model=graph.name,
        search="backtracking",
        k_multi=0,
        node_limit=0,
        e_nodes=0,
        worlds=0,
        iterations=outcome.moments[-1].rewritten,
        stop_reason=outcome.stop_reason,
        cost_before_us=outcome.moments[0].best_us,
        cost_after_us=outcome.cost_us,
        bound_us=0.0,
        cpu_s=watch.cpu_s,
        wall_s=watch.wall_s,
        best_s=outcome.found_at().cpu_s,
        join_ms=reference_ms,
        cpu_limit_s=cpu_limit_s,
        moments=tuple((moment.cpu_s, moment.best_us, 0) for moment in outcome.moments),
    )


def _best_s(exploration: Exploration, extraction: Extraction) -> float:
    """Return when the cheapest graph of any world was known; 0 where no world was grown."""
    if exploration.decisions:
        known = [d for d in exploration.decisions if d.best_us <= extraction.cost_us * (1 + 1e-9)]
        return known[0].seconds if known else exploration.seconds
    best_us = min((world.best_us for world in exploration.worlds), default=0.0)
    seconds = [w.seconds for w in exploration.worlds if w.best_us <= best_us * (1 + 1e-9)]
    is_later = extraction.cost_us < best_us * (1 - 1e-6)  # only all worlds together had it
    return exploration.seconds if is_later else min(seconds, default=0.0)
