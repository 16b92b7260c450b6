"""Graphs that compute the same, whose parts kernels are sought for, and where in the e-graph they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from relational_tensat.tensor import Graph


@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """The model, or another graph that computes the same.

    Attributes:
        graph: the graph.
        source: what it is, as rows of ``fused_region`` name it: ``model``, ``cheapest`` or ``other``.
        classes: of the values that it computes, by their names. Values of one class are the same in all
            graphs; those without one are the graph's own.
    """

    graph: Graph
    source: str = "model"
    classes: Mapping[str, int] = field(default_factory=dict)
