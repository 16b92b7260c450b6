"""What a search is measured at, and what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

#: Costs that differ by less than this part are one.
_SAME = 1e-9

#: Searches that extract in the end only, but for snapshots.
EXTRACTED_ONCE = ("saturation", "mcts")


@dataclass(frozen=True, slots=True)
class Limits:
    """What runs are compared at.

    Attributes:
        k_multi: iterations with multi-pattern rules, of saturation or of each subgraph.
        node_limit: of the e-graph, or of the widest subgraphs.
        cpu_s: CPU seconds after which no other iteration is begun; None: no such limit.
    """

    k_multi: int
    node_limit: int
    cpu_s: float | None = None


class Moment(NamedTuple):
    """When the cheapest graph so far got cheaper: CPU seconds, its cost, e-nodes then."""

    cpu_s: float
    cost_us: float
    e_nodes: int


class Snapshot(NamedTuple):
    """What a run of fewer CPU seconds would have ended with: extracted on the way, beside its clock.

    It would have ended after the first iteration (of tree search: step of rollouts) that took it past
    these.
    """

    budget_s: float
    cost_us: float


class GrownSubgraph(NamedTuple):
    """A subgraph of a search by focus: ``SubgraphReport``, when it was extracted from, and the bound."""

    kind: str
    node_limit: int
    best_us: float
    universe: int
    iteration: int
    stop_reason: str
    cpu_s: float
    bound_us: float


class Made(NamedTuple):
    """When a run was made, by which code, and the load average when it began.

    The load has two ends where a kept table had told it of all its runs together.
    """

    date: str = ""
    commit: str = ""
    least_load: float = 0.0
    most_load: float = 0.0


#: Not known.
_NOT_MADE = Made()


@dataclass(frozen=True, slots=True)
class SearchRun:
    """What was measured. The attributes are keys of the results that the bench writes.

    Attributes:
        search: one of ``SEARCHES``.
        k_multi: in how many iterations of an e-graph, or of a subgraph, multi-pattern rules took part.
        node_limit: of the e-graph, or of the widest subgraphs; nothing to backtracking, which has no
            e-graph.
        cpu_limit_s: CPU seconds after which no other iteration is begun; None: no such limit.
        seed: of what is drawn at random.
        e_nodes: of the e-graph, or of all subgraphs together.
        subgraphs: how many were grown; 0 for saturation.
        cost_before_us, cost_after_us: of the model and of the cheapest graph found.
        bound_us: no graph of that e-graph costs less; 0: not known.
        explore_cpu_s: CPU seconds of this process, all threads, from the graph in memory to the end of the
            search, its own extractions included, snapshots not.
        cpu_s: the same with the final extraction.
        join_ms: how fast the machine was just before (``bench.common.reference``).
        moments: when the cheapest graph so far got cheaper.
        snapshots: of budgets below ``cpu_limit_s``, where extraction is in the end only.
        grown: of focus, its subgraphs; none where a kept table does not have them.
        same_as: the cell whose run this is, too: see ``bench.search.common_steps``; empty: its own.
    """

    model: str
    search: str
    k_multi: int
    node_limit: int
    e_nodes: int
    subgraphs: int
    iterations: int
    stop_reason: str
    cost_before_us: float
    cost_after_us: float
    bound_us: float
    explore_cpu_s: float
    cpu_s: float
    wall_s: float
    join_ms: float
    cpu_limit_s: float | None = None
    seed: int = 0
    moments: tuple[Moment, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    grown: tuple[GrownSubgraph, ...] = ()
    same_as: str = ""
    made: Made = _NOT_MADE

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> SearchRun:
        """Return a run that was kept as JSON."""
        rows = {
            "moments": tuple(Moment(*row) for row in values["moments"]),
            "snapshots": tuple(Snapshot(*row) for row in values["snapshots"]),
            "grown": tuple(GrownSubgraph(*row) for row in values["grown"]),
            "made": Made(*values["made"]),
        }
        return cls(**{**values, **rows})

    @property
    def best_s(self) -> float:
        """CPU seconds until a graph as cheap as the cheapest was known."""
        least_us = self.cost_after_us * (1 + _SAME)
        known = (moment.cpu_s for moment in self.moments if moment.cost_us <= least_us)
        return next(known, 0.0)

    def cost_at_us(self, budget_s: float) -> float | None:
        """Return what the cheapest graph cost after so many CPU seconds; None: it was not run so long.

        Where extraction is in the end only: what a run of this budget would have ended with.
        """
        if (
            self.stop_reason == "time"
            and self.cpu_limit_s is not None
            and self.cpu_limit_s < budget_s
        ):
            return None
        if self.search in EXTRACTED_ONCE:
            found = (taken.cost_us for taken in self.snapshots if taken.budget_s == budget_s)
            return next(found, self.cost_after_us)
        known = [moment.cost_us for moment in self.moments if moment.cpu_s <= budget_s]
        return min([self.cost_before_us, *known])
