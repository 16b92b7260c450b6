"""Extraction for tests: of the original graph, and of the cheapest one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from relational_tensat.egraph import EGraph
from relational_tensat.extract import ExtractionOptions, extract
from relational_tensat.extract.tables import choose, chosen_graph, extraction_problem
from relational_tensat.tensor import Attrs, Graph, ValueType


@dataclass(frozen=True)
class FlatCost:
    """So many µs for every application, but for those of the operators listed."""

    each_us: float = 1.0
    by_operator: Mapping[str, float] = field(default_factory=dict)
    name: str = "flat"

    def cost_us(
        self, op: str, inputs: tuple[ValueType, ...], output: ValueType, attrs: Attrs
    ) -> float:
        """Return the operator's cost."""
        free = dict.fromkeys(("input", "weight", "noop", "part", "fill"), 0.0)
        return {**free, **self.by_operator}.get(op, self.each_us)


def original_graph(egraph: EGraph) -> Graph:
    """Return the graph of the original e-nodes."""
    table = extraction_problem(egraph, FlatCost())
    choose(egraph, table, table.problem.original)
    return chosen_graph(egraph)


def cheapest_graph(egraph: EGraph, cost: FlatCost | None = None) -> Graph:
    """Return the cheapest graph, each operator at 1 µs by default."""
    table = extraction_problem(egraph, cost or FlatCost())
    choose(egraph, table, extract(table.problem, ExtractionOptions("greedy-dag")).choice)
    return chosen_graph(egraph)
