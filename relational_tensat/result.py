"""What a run returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relational_tensat.cost import count_inference_ops
from relational_tensat.graph import Graph

if TYPE_CHECKING:
    from relational_tensat.explore import IterationReport, RuleStats
    from relational_tensat.verify import Verification


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """An optimized graph and how it was found.

    Attributes:
        model: the model's path as given, or the graph's name.
        graph: the optimized graph as written: what depends on weights only is folded.
        original: the graph that was given.
        cost_profile: the name of the cost model.
        cost_before_us, cost_after_us: of one inference; after is never more than before.
        bound_us: no graph in the e-graph costs less; 0 where the extractor gives no bound.
        gap: ``(cost_after - bound) / cost_after``.
        optimal: the solver proved that no graph in the e-graph is cheaper.
        extractor: which one chose the graph.
        e_nodes, e_classes: of the e-graph, at the end of exploration.
        iterations: of exploration.
        statements: SQL statements that exploration ran.
        stop_reason: saturated, iterations, nodes, time, memory or interrupted.
        rules: per rule, its matches, how many of them were applied, and its seconds.
        rules_used: per rule, how many e-nodes of the optimized graph it made.
        log: what each iteration did.
        seconds: per phase: load, explore, extract, verify and total.
        verification: what was compared, and the errors found.
        output: the file written; None if none was asked for.
        notes: what the reader should know beside the figures, one sentence each.
        untrusted_rules: rules that were let in although they are not known to be sound, and why.
    """

    model: str
    graph: Graph
    original: Graph
    cost_profile: str
    cost_before_us: float
    cost_after_us: float
    bound_us: float
    gap: float
    optimal: bool
    extractor: str
    e_nodes: int
    e_classes: int
    iterations: int
    statements: int
    stop_reason: str
    rules: Mapping[str, RuleStats]
    rules_used: Mapping[str, int]
    log: tuple[IterationReport, ...]
    seconds: Mapping[str, float]
    verification: Verification
    output: Path | None = None
    notes: tuple[str, ...] = ()
    untrusted_rules: Mapping[str, str] = field(default_factory=dict)

    @property
    def saturated(self) -> bool:
        """Whether no rule had anything left to add."""
        return self.stop_reason == "saturated"

    @property
    def ops_before(self) -> dict[str, int]:
        """Operators of the original that run at inference, by name."""
        return count_inference_ops(self.original)

    @property
    def ops_after(self) -> dict[str, int]:
        """Operators of the optimized graph that run at inference, by name."""
        return count_inference_ops(self.graph)

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints; every number in it is finite."""
        return {
            "model": self.model,
            "cost_profile": self.cost_profile,
            "cost_before_us": self.cost_before_us,
            "cost_after_us": self.cost_after_us,
            "e_nodes": self.e_nodes,
            "e_classes": self.e_classes,
            "iterations": self.iterations,
            "stop_reason": self.stop_reason,
            "saturated": self.saturated,
            "gap": self.gap,
            "optimal": self.optimal,
            "seconds": dict(self.seconds),
            "verified": {
                "ok": self.verification.ok,
                "max_relative_error": self.verification.max_relative_error,
                "runs": self.verification.runs,
            },
            "rules": {
                name: {
                    "matches": stats.matches,
                    "applied": stats.applied,
                    "seconds": stats.seconds,
                }
                for name, stats in self.rules.items()
            },
            "output": None if self.output is None else str(self.output),
            "untrusted_rules": dict(self.untrusted_rules),
        }
