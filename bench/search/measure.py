"""One measured search: a model explored and extracted from, by saturation or over worlds."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from bench.common.reference import join_ms
from bench.tensat.measure import stopwatch
from relational_tensat.base.process import ProcessOptions
from relational_tensat.cost import Profile
from relational_tensat.egraph import EGraph
from relational_tensat.explore import Exploration, ExplorationOptions, explore
from relational_tensat.explore.observer import Observer
from relational_tensat.explore.strategies.focus import explore_focus
from relational_tensat.extract import Extraction, ExtractionOptions
from relational_tensat.extract.anytime import AnytimeExtractor
from relational_tensat.rules.model import Rule
from relational_tensat.run.progress import Silent
from relational_tensat.tensor import Graph

#: What is compared, by the values of ``--search``.
SEARCHES = ("saturation", "focus")


@dataclass(frozen=True, slots=True)
class SearchRun:
    """What was measured. The attributes are keys of the results that the bench writes.

    Attributes:
        search: a value of ``--search``.
        k_multi: in how many iterations of an e-graph, or of a world, multi-pattern rules took part.
        node_limit: of the e-graph, or of the widest worlds.
        e_nodes: of the e-graph, or of all worlds together.
        worlds: how many were grown; 0 for saturation.
        cost_before_us, cost_after_us: of the model and of the cheapest graph found.
        bound_us: no graph of that e-graph costs less.
        cpu_s: CPU seconds of this process, all threads, from the graph in memory to the final extraction.
        best_s: wall seconds until the first world had a graph as cheap as the cheapest of any; 0 for
            saturation, which has none before the end.
        join_ms: how fast the machine was just before (``bench.common.reference``).
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


def measure(
    graph: Graph,
    search: str,
    limits: ExplorationOptions,
    extraction_options: ExtractionOptions,
    rules: Sequence[Rule],
    profile: Profile,
) -> SearchRun:
    """Search one model with one thread.

    Args:
        limits: of saturation, and of worlds; ``search`` is not looked at.
    """
    reference_ms = join_ms()
    gc.collect()  # what earlier runs left behind is not this one's
    with stopwatch() as watch, closing(EGraph.create(graph)) as egraph:
        extractor = AnytimeExtractor(
            egraph, profile, extraction_options, ProcessOptions(), Silent()
        )
        exploration = _explored(egraph, search, limits, rules, extractor)
        extraction = extractor.finish(exploration.iterations)
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
    )


def _explored(
    egraph: EGraph,
    search: str,
    limits: ExplorationOptions,
    rules: Sequence[Rule],
    extractor: AnytimeExtractor,
) -> Exploration:
    if search == "saturation":
        return explore(egraph, rules, limits)
    options = replace(limits, search=search)
    return explore_focus(egraph, rules, options, extractor, Observer(watch=extractor.watch))


def _best_s(exploration: Exploration, extraction: Extraction) -> float:
    """Return when the cheapest graph of any world was known; 0 where no world was grown."""
    best_us = min((world.best_us for world in exploration.worlds), default=0.0)
    seconds = [w.seconds for w in exploration.worlds if w.best_us <= best_us * (1 + 1e-9)]
    is_later = extraction.cost_us < best_us * (1 - 1e-6)  # only all worlds together had it
    return exploration.seconds if is_later else min(seconds, default=0.0)
