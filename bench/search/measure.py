"""One measured search: a model explored and extracted, by saturation or over subgraphs."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Sequence
from contextlib import closing, nullcontext
from dataclasses import replace

from bench.common.reference import join_ms
from bench.common.stopwatch import stopwatch
from bench.search.search_run import (
    EXTRACTED_ONCE,
    GrownSubgraph,
    Moment,
    SearchRun,
    Snapshot,
)
from bench.taso.search import backtrack
from relational_tensat.base.deadline import counting_cpu_seconds
from relational_tensat.base.process import ProcessOptions
from relational_tensat.base.watch import Watch
from relational_tensat.cost import Profile
from relational_tensat.egraph import EGraph
from relational_tensat.explore import Exploration, ExplorationOptions
from relational_tensat.explore.outcome import Observer
from relational_tensat.explore.strategies import STRATEGIES
from relational_tensat.explore.strategies.strategy import SearchSettings, Strategy
from relational_tensat.extract import ExtractionOptions, extract
from relational_tensat.extract.anytime import AnytimeExtractor
from relational_tensat.extract.kept_choice import ExtractionEntry
from relational_tensat.extract.tables import extraction_problem
from relational_tensat.rules.model import Rule
from relational_tensat.run.progress import Silent
from relational_tensat.tensor import Graph

#: What is compared: values of ``--search``, and TASO's search on graphs.
SEARCHES = ("saturation", "auto", "focus", "focus-mcts", "mcts", "backtracking")

#: CPU seconds at which searches are compared.
BUDGETS_S = (5.0, 20.0, 60.0)

#: Of graphs that backtracking rewrites: only its time ends it.
_MANY = 1_000_000

#: Which graphs backtracking looks at: as TASO's authors had it, those up to 5 % costlier than the best.
_ALPHA = 1.05


class _Course(Silent):
    """The clock of a search, which stands still for snapshots, and what was known when."""

    def __init__(
        self,
        egraph: EGraph,
        profile: Profile,
        extraction: ExtractionOptions,
        cpu_limit_s: float | None,
        started_s: float,
        *,
        takes_snapshots: bool,
    ) -> None:
        """Begin.

        Args:
            started_s: CPU seconds of this process when the search began.
            takes_snapshots: whether it is extracted from at smaller budgets, too.
        """
        self.moments: list[Moment] = []
        self.snapshots: list[Snapshot] = []
        self.extractions: list[tuple[float, ExtractionEntry]] = []
        self._egraph, self._profile, self._extraction = egraph, profile, extraction
        self._limit_s = math.inf if cpu_limit_s is None else cpu_limit_s
        budgets_s = BUDGETS_S if takes_snapshots else ()
        self._budgets_s = [budget_s for budget_s in budgets_s if budget_s < self._limit_s]
        self._started_s = started_s

    @property
    def seconds(self) -> float:
        """CPU seconds so far, without snapshots."""
        return time.process_time() - self._started_s

    def ends(self) -> bool:
        """Return whether the time is over; take the snapshots that are due."""
        while self._budgets_s and self.seconds >= self._budgets_s[0]:
            self._take(self._budgets_s.pop(0))
        return self.seconds >= self._limit_s

    def reason(self, _iteration: int) -> str | None:
        """Return the reason to stop after an iteration."""
        return "time" if self.ends() else None

    def extracted(self, entry: ExtractionEntry) -> None:
        self.extractions.append((self.seconds, entry))
        self.note(self.seconds, entry.best_us)

    def note(self, at_s: float, best_us: float) -> None:
        """Note what the cheapest graph costs then."""
        if not self.moments or best_us < self.moments[-1].cost_us * (1 - 1e-9):
            self.moments.append(Moment(round(at_s, 3), best_us, self._egraph.e_nodes))

    def _take(self, budget_s: float) -> None:
        """Extract from the e-graph as it is, as if the search were over, beside its clock."""
        explore_s, began_s = self.seconds, time.process_time()
        with self._egraph.transaction():
            self._egraph.catalogue.flush(self._egraph.database)
            problem = extraction_problem(self._egraph, self._profile).problem
        found = extract(problem, self._extraction)
        extract_s = time.process_time() - began_s
        self.snapshots.append(Snapshot(budget_s, found.cost_us))
        self.note(explore_s + extract_s, found.cost_us)
        self._started_s += time.process_time() - began_s


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
        limits: of saturation, and of subgraphs; ``search`` is not looked at.
        cpu_limit_s: after so many CPU seconds no other iteration is begun, whatever time limit ``limits``
            have; all other limits of seconds count CPU seconds, too. What is then extracted from is
            extracted from whole.
    """
    if cpu_limit_s is not None:
        # The tree search within focus may have a part of the time that is left.
        limits = replace(limits, time_limit_s=cpu_limit_s if search == "focus-mcts" else None)
    if search == "backtracking":
        return _backtracked(graph, limits, rules, profile, cpu_limit_s)
    reference_ms = join_ms()
    gc.collect()  # what earlier runs left behind is not this one's
    counting = nullcontext() if cpu_limit_s is None else counting_cpu_seconds()
    started_s = time.process_time()
    with counting, stopwatch() as watch, closing(EGraph.create(graph)) as egraph:
        course = _Course(
            egraph,
            profile,
            extraction_options,
            cpu_limit_s,
            started_s,
            takes_snapshots=search in EXTRACTED_ONCE,
        )
        extractor = AnytimeExtractor(egraph, profile, extraction_options, ProcessOptions(), course)
        exploration = _explore(egraph, search, limits, rules, extractor, course, seed)
        explore_s = course.seconds
        extraction = extractor.finish(exploration.iterations)
        cpu_s = course.seconds
        course.note(cpu_s, extraction.cost_us)
        e_nodes, _ = egraph.counts()
    return SearchRun(
        model=graph.name,
        search=search,
        k_multi=limits.multi_iterations,
        node_limit=limits.node_limit,
        e_nodes=e_nodes,
        subgraphs=len(exploration.subgraphs),
        iterations=exploration.iterations,
        stop_reason=exploration.stop_reason,
        cost_before_us=extractor.original_us,
        cost_after_us=extraction.cost_us,
        bound_us=extraction.bound_us,
        explore_cpu_s=explore_s,
        cpu_s=cpu_s,
        wall_s=watch.wall_s,
        join_ms=reference_ms,
        cpu_limit_s=cpu_limit_s,
        seed=seed,
        moments=tuple(course.moments),
        snapshots=tuple(course.snapshots),
        grown=_grown(exploration, course) if search == "focus" else (),
    )


def _explore(
    egraph: EGraph,
    search: str,
    limits: ExplorationOptions,
    rules: Sequence[Rule],
    extractor: AnytimeExtractor,
    course: _Course,
    seed: int,
) -> Exploration:
    """Explore by one of the searches."""
    observer = Observer(after=course.reason, watch=extractor.watch)
    if search == "mcts":  # a decision may take longer than the time that there is
        observer = Observer(watch=Watch(should_stop=course.ends))
        limits = replace(limits, subgraph_nodes=limits.node_limit)
    limits = replace(limits, search=search)
    strategy: Strategy = STRATEGIES[search]
    return strategy(egraph, rules, SearchSettings(limits, extractor, observer, seed))


def _grown(exploration: Exploration, course: _Course) -> tuple[GrownSubgraph, ...]:
    """Return the subgraphs, each with the last extraction that came before another was grown."""
    rows = []
    for subgraph in exploration.subgraphs:
        known = [
            (s, entry) for s, entry in course.extractions if entry.iteration <= subgraph.iteration
        ]
        at_s, last = known[-1]
        rows.append(
            GrownSubgraph(
                subgraph.kind,
                subgraph.node_limit,
                subgraph.best_us,
                subgraph.universe,
                subgraph.iteration,
                subgraph.stop_reason,
                round(at_s, 3),
                last.bound_us,
            )
        )
    return tuple(rows)


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
        subgraphs=0,
        iterations=outcome.moments[-1].rewritten,
        stop_reason=outcome.stop_reason,
        cost_before_us=outcome.moments[0].best_us,
        cost_after_us=outcome.cost_us,
        bound_us=0.0,
        explore_cpu_s=watch.cpu_s,
        cpu_s=watch.cpu_s,
        wall_s=watch.wall_s,
        join_ms=reference_ms,
        cpu_limit_s=cpu_limit_s,
        moments=tuple(Moment(moment.cpu_s, moment.best_us, 0) for moment in outcome.moments),
    )
