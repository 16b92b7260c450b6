"""One measured run: explored and extracted in turns, or one after the other."""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from relational_tensat.cost import Profile
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, Observer, explore
from relational_tensat.extract.anytime import AnytimeExtractor
from relational_tensat.rules.model import Rule
from relational_tensat.run.options import Options
from relational_tensat.run.progress import Silent
from relational_tensat.tensor import Graph


@dataclass(frozen=True, slots=True)
class AnytimeRun:
    """What was measured, CPU seconds of this process.

    Attributes:
        every, patience: ``--extract-every`` and ``--stop-patience``; 0 where not used.
        optimum_after: the iteration whose extraction first found the final cost; of a run without
            extractions in between, the last.
        explore_s: without the extractions in between.
        between_s, final_s: of the extractions in between, and of the final one.
        cost_us, gap: of the result.
    """

    model: str
    k_multi: int
    every: int
    patience: int
    iterations: int
    optimum_after: int
    e_nodes: int
    stop_reason: str
    explore_s: float
    between_s: float
    final_s: float
    cost_us: float
    gap: float

    @property
    def total_s(self) -> float:
        """CPU seconds of all of it."""
        return self.explore_s + self.between_s + self.final_s


@dataclass(frozen=True, slots=True)
class FirstAnswer:
    """When an extraction had which graphs: CPU seconds since it began, making its problem included.

    Attributes:
        first_s, first_us: when the first graph was there, and what it costs.
        early_us: the cheapest after ``EARLY_S``.
        best_s, best_us: when the cheapest was there, and what it costs.
        total_s: when the extraction ended.
        gap: of the cheapest.
    """

    model: str
    k_multi: int
    e_nodes: int
    e_classes: int
    first_s: float
    first_us: float
    early_us: float
    best_s: float
    best_us: float
    total_s: float
    gap: float


EARLY_S = 1.0


def measure_run(
    graph: Graph, k_multi: int, rules: Sequence[Rule], profile: Profile, options: Options
) -> AnytimeRun:
    """Explore and extract as the options say, with one thread."""
    gc.collect()
    with closing(EGraph.create(graph)) as egraph:
        extractor = _Timed(egraph, profile, options.extraction, options.process, Silent())
        start_s = time.process_time()
        explored = explore(
            egraph, rules, _limits(k_multi, options), observer=Observer(after=extractor.after)
        )
        explored_s = time.process_time() - start_s
        start_s = time.process_time()
        extraction = extractor.finish(explored.iterations)
        final_s = time.process_time() - start_s
        cost_us = extractor.log[-1].best_us
        reached = [
            entry.iteration for entry in extractor.log if entry.best_us <= cost_us * (1 + 1e-9)
        ]
        return AnytimeRun(
            graph.name,
            k_multi,
            options.extraction.extract_every,
            options.extraction.patience,
            explored.iterations,
            reached[0],
            egraph.e_nodes,
            explored.stop_reason,
            explored_s - extractor.between_s,
            extractor.between_s,
            final_s,
            extraction.cost_us,
            extraction.gap,
        )


def measure_first(
    graph: Graph, k_multi: int, rules: Sequence[Rule], profile: Profile, options: Options
) -> FirstAnswer:
    """Explore, and watch the extraction's first graphs come."""
    gc.collect()
    with closing(EGraph.create(graph)) as egraph:
        explored = explore(egraph, rules, _limits(k_multi, options))
        watch = _Watch()
        extractor = AnytimeExtractor(egraph, profile, options.extraction, options.process, watch)
        watch.begun = time.process_time()
        extraction = extractor.finish(explored.iterations)
        total_s = time.process_time() - watch.begun
        e_nodes, e_classes = egraph.counts()
    first_s, first_us = watch.graphs[0]
    best_s, best_us = watch.graphs[-1]
    early_us = min(cost for seconds, cost in watch.graphs if seconds <= max(EARLY_S, first_s))
    return FirstAnswer(
        graph.name,
        k_multi,
        e_nodes,
        e_classes,
        first_s,
        first_us,
        early_us,
        best_s,
        best_us,
        total_s,
        extraction.gap,
    )


def _limits(k_multi: int, options: Options) -> ExplorationOptions:
    return replace(options.exploration, multi_iterations=k_multi)


class _Timed(AnytimeExtractor):
    """Counts the CPU seconds of the extractions in between."""

    between_s = 0.0

    def after(self, iteration: int) -> str | None:
        """Extract, and add up what it took."""
        start_s = time.process_time()
        try:
            return super().after(iteration)
        finally:
            self.between_s += time.process_time() - start_s


class _Watch(Silent):
    """Remembers when each cheaper graph came, and what it costs."""

    def __init__(self) -> None:
        self.begun = 0.0
        self.graphs: list[tuple[float, float]] = []

    def extraction(self, incumbent_us: float, bound_us: float) -> None:
        """Remember a graph, if it is a cheaper one."""
        if not self.graphs or incumbent_us < self.graphs[-1][1]:
            self.graphs.append((time.process_time() - self.begun, incumbent_us))
