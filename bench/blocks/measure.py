"""One graph explored and extracted from with and without reuse of its recurring blocks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

from bench.scale.families import transformer
from relational_tensat.base.errors import UsageError
from relational_tensat.cost import CostModel
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions
from relational_tensat.explore.strategies.blocks import BlocksReport, explore_blocks
from relational_tensat.extract import ExtractionOptions, extract
from relational_tensat.extract.tables import extraction_problem
from relational_tensat.models import MODELS
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Case:
    """What is run with and without reuse.

    Attributes:
        model: one of ``MODELS``, or ``transformer_N`` for N layers.
        k_multi: iterations of multi-pattern rules.
        node_limit: of exploration.
    """

    model: str
    k_multi: int
    node_limit: int = 50_000

    def build(self) -> Graph:
        """Return the graph.

        Raises:
            UsageError: there is no such model.
        """
        name, _, layers = self.model.partition("_")
        if name == "transformer" and layers.isdigit():
            return transformer(int(layers))
        if self.model not in MODELS:
            raise UsageError(
                f"unknown model {self.model!r}, expected one of `bench models` or transformer_N"
            )
        return MODELS[self.model]()


@dataclass(frozen=True, slots=True)
class BlocksRun:
    """The result of one run; as JSON, a run of a saved result.

    Attributes:
        blocks: ``never`` or ``always``, as ``--blocks``.
        load_cpu_s, explore_cpu_s, extract_cpu_s: CPU seconds of all threads.
        explore_s: wall seconds.
        cost_us: of the extracted graph; None where nothing was extracted.
        reused: what was; None if nothing was.
    """

    model: str
    k_multi: int
    node_limit: int
    blocks: str
    e_nodes: int
    e_classes: int
    iterations: int
    stop_reason: str
    load_cpu_s: float
    explore_cpu_s: float
    explore_s: float
    extract_cpu_s: float
    cost_us: float | None
    gap: float | None
    reused: BlocksReport | None


def measure(
    case: Case,
    blocks: str,
    rules: Sequence[Rule],
    cost: CostModel,
    *,
    time_limit_s: float,
    extract_time_limit_s: float,
) -> BlocksRun:
    """Explore a case and extract from it.

    Args:
        extract_time_limit_s: 0 for no extraction.
    """
    graph = case.build()
    limits = ExplorationOptions(
        multi_iterations=case.k_multi,
        node_limit=case.node_limit,
        time_limit_s=time_limit_s,
        blocks=blocks,
    )
    load_s, egraph = _timed(lambda: EGraph.create(graph))
    explore_s, (exploration, report) = _timed(lambda: explore_blocks(egraph, rules, limits))
    extract_s, extraction = 0.0, None
    if extract_time_limit_s:
        extract_s, extraction = _timed(
            lambda: extract(
                extraction_problem(egraph, cost).problem,
                ExtractionOptions(time_limit_s=extract_time_limit_s),
            )
        )
    counts = egraph.counts()
    egraph.close()
    return BlocksRun(
        model=case.model,
        k_multi=case.k_multi,
        node_limit=case.node_limit,
        blocks=blocks,
        e_nodes=counts[0],
        e_classes=counts[1],
        iterations=exploration.iterations,
        stop_reason=exploration.stop_reason,
        load_cpu_s=load_s,
        explore_cpu_s=explore_s,
        explore_s=exploration.seconds,
        extract_cpu_s=extract_s,
        cost_us=None if extraction is None else extraction.cost_us,
        gap=None if extraction is None else extraction.gap,
        reused=report,
    )


def as_json(run: BlocksRun) -> dict[str, object]:
    """Return a run as it is saved."""
    return asdict(run)


def _timed(function: Callable[[], _T]) -> tuple[float, _T]:
    start_s = time.process_time()
    result = function()
    return time.process_time() - start_s, result
