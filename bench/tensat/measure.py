"""One measured run: a model explored and extracted, with the time that each took."""

from __future__ import annotations

import dataclasses
import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

from bench.common.reference import join_ms
from relational_tensat.cost import Profile, graph_cost_us
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.extract import ExtractionOptions, extract
from relational_tensat.extract.tables import extraction_problem
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph


@dataclass(frozen=True, slots=True)
class Settings:
    """What all runs of a benchmark share.

    Attributes:
        iterations: at most so many iterations of exploration.
        node_limit: at most so many e-nodes.
        extractor: ilp, greedy-dag or greedy.
        extract_time_limit_s: of one extraction.
    """

    rules: Sequence[Rule]
    profile: Profile
    iterations: int = 15
    node_limit: int = 50_000
    extractor: str = "ilp"
    extract_time_limit_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Run:
    """What was measured. The attributes are keys of the results that the bench writes.

    Attributes:
        k_multi: in how many iterations the multi-pattern rules took part.
        statements: of SQL, in exploration.
        explore_cpu_s: CPU seconds of this process, all threads, from the graph in memory to the
            explored e-graph: the database is made and the model put into it within this time.
        extract_s: wall seconds of extraction, making its problem included.
        cost_before_us: of the model, under the profile.
        cost_after_us: of the extracted graph.
        gap: how much of that cost might still be saved, as a fraction; 0 is proven optimal.
        extract_cpu_s: CPU seconds of extraction; like ``join_ms``, ``--json`` does not print it.
        join_ms: how fast the machine was just before (``bench.common.reference``).
    """

    model: str
    k_multi: int
    e_nodes: int
    e_classes: int
    iterations: int
    statements: int
    stop_reason: str
    explore_cpu_s: float
    explore_wall_s: float
    extract_s: float
    cost_before_us: float
    cost_after_us: float
    gap: float
    extract_cpu_s: float
    join_ms: float

    def as_json(self) -> dict[str, str | int | float]:
        """Return the keys of the documented schema."""
        values = dataclasses.asdict(self)
        del values["extract_cpu_s"], values["join_ms"]
        return values


@dataclass(slots=True)
class Stopwatch:
    """CPU and wall seconds of a block of code; see ``stopwatch``."""

    cpu_s: float = 0.0
    wall_s: float = 0.0


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    """Measure the block; the seconds are there once it is left."""
    watch = Stopwatch()
    cpu_start_s, wall_start_s = time.process_time(), time.perf_counter()
    try:
        yield watch
    finally:
        watch.cpu_s = time.process_time() - cpu_start_s
        watch.wall_s = time.perf_counter() - wall_start_s


def measure(graph: Graph, k_multi: int, settings: Settings) -> Run:
    """Explore and extract one model, with one thread."""
    limits = ExplorationOptions(
        iterations=settings.iterations,
        multi_iterations=k_multi,
        multi_schedule="first",  # TENSAT's
        node_limit=settings.node_limit,
        time_limit_s=None,
    )
    reference_ms = join_ms()
    gc.collect()  # what earlier runs left behind is not this one's
    with ExitStack() as resources:
        with stopwatch() as exploring:
            egraph = resources.enter_context(closing(EGraph.create(graph)))
            exploration = explore(egraph, settings.rules, limits)
        e_nodes, e_classes = egraph.counts()
        with stopwatch() as extracting:
            problem = extraction_problem(egraph, settings.profile).problem
            extraction = extract(
                problem,
                ExtractionOptions(settings.extractor, time_limit_s=settings.extract_time_limit_s),
            )
    return Run(
        model=graph.name,
        k_multi=k_multi,
        e_nodes=e_nodes,
        e_classes=e_classes,
        iterations=exploration.iterations,
        statements=exploration.statements,
        stop_reason=exploration.stop_reason,
        explore_cpu_s=exploring.cpu_s,
        explore_wall_s=exploring.wall_s,
        extract_s=extracting.wall_s,
        cost_before_us=graph_cost_us(graph, settings.profile),
        cost_after_us=extraction.cost_us,
        gap=extraction.gap,
        extract_cpu_s=extracting.cpu_s,
        join_ms=reference_ms,
    )
