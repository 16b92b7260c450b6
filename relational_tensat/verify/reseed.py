"""Models whose weights are all alike, given weights that differ."""

from __future__ import annotations

from dataclasses import replace

from relational_tensat.tensor import Graph, Weight
from relational_tensat.tensor.inference import weight_bytes
from relational_tensat.verify.shrinking import RandomWeights

#: More than this is not written as a model only to be run once.
_MOST_BYTES = 1 << 28


def is_small(graph: Graph) -> bool:
    """Whether the graph's weights are small enough to be written for a check."""
    return weight_bytes(graph) <= _MOST_BYTES


def can_reseed(graph: Graph) -> bool:
    """Whether the graph has weights, small enough to be written again for a check."""
    return weight_bytes(graph) > 0 and is_small(graph)


def reseed(graph: Graph, weights: RandomWeights) -> Graph:
    """Return the graph with other data for its weights; it may use a part of them only."""
    changed = {name: Weight(w.type, weights[name]) for name, w in graph.weights.items()}
    return replace(graph, weights=changed, origin=None)
