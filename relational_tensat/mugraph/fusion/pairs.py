"""Two parts of a model as one with two results: one reads what the other gives, or both read the same.

Together they are convex: nothing outside lies between two of their nodes, so one kernel that gives both
values needs neither of them before it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relational_tensat.tensor import Graph, Node

#: The rules of kernels have as many sources: so many values can a kernel give.
MOST_OUTPUTS = 2


@dataclass(frozen=True, slots=True)
class Pair:
    """Nodes that others read two results of.

    Attributes:
        nodes: in topological order.
        outputs: the results, in that order.
    """

    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]


def pairs(graph: Graph, parts: Sequence[Sequence[Node]]) -> Iterator[Pair]:
    """Yield the pairs of a model's parts that a kernel may stand for.

    Args:
        graph: the model.
        parts: nodes in topological order, of which only the last one's result is read by others.
    """
    readers: dict[str, list[int]] = {}
    reads = [{name for node in part for name in node.inputs} for part in parts]
    for place, names in enumerate(reads):
        for name in names:
            readers.setdefault(name, []).append(place)
    for place, part in enumerate(parts):
        shared = {other for name in reads[place] for other in readers[name] if other > place}
        for other in sorted(shared.union(readers.get(part[-1].outputs[0], ())) - {place}):
            pair = _pair(graph, (*part, *parts[other]))
            if pair is not None:
                yield pair


def outputs_of(graph: Graph, nodes: Sequence[Node]) -> tuple[str, ...]:
    """Return the results of nodes that others read, or that the model returns, in order."""
    inner = {name for node in nodes for name in node.outputs}
    read = {*graph.outputs}
    for node in graph.nodes:
        if inner.isdisjoint(node.outputs):
            read.update(node.inputs)
    return tuple(name for node in nodes for name in node.outputs if name in read)


def is_convex(graph: Graph, nodes: Sequence[Node]) -> bool:
    """Return whether none of the nodes needs what others compute of their results."""
    inner = {name for node in nodes for name in node.outputs}
    beyond: set[str] = set()
    for node in graph.nodes:
        if not inner.isdisjoint(node.outputs):
            if not beyond.isdisjoint(node.inputs):
                return False
        elif not inner.isdisjoint(node.inputs) or not beyond.isdisjoint(node.inputs):
            beyond.update(node.outputs)
    return True


def _pair(graph: Graph, members: Sequence[Node]) -> Pair | None:
    inner = {name for node in members for name in node.outputs}
    nodes = tuple(node for node in graph.nodes if not inner.isdisjoint(node.outputs))
    outputs = outputs_of(graph, nodes)
    if len(nodes) < len(members) or len(outputs) != MOST_OUTPUTS or not is_convex(graph, nodes):
        return None  # they have nodes in common, for example
    return Pair(nodes, outputs)
