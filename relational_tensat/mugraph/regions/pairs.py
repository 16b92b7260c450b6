"""Two parts of a model as one with two results: one reads what the other gives, or both read the same.

Together they are convex: nothing outside lies between two of their nodes, so one kernel that gives both
values needs neither of them before it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relational_tensat.tensor import Graph, Node, TensorType

#: The rules of kernels have as many sources: so many values can a kernel give.
MOST_OUTPUTS = 2
#: Of the parts that read what one reads, so many that come next are tried with it.
_MOST_PARTNERS = 8


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
    surroundings = Surroundings(graph)
    readers: dict[str, list[int]] = {}
    reads = [{name for node in part for name in node.inputs} for part in parts]
    for place, names in enumerate(reads):
        for name in sorted(names):
            readers.setdefault(name, []).append(place)
    for place, part in enumerate(parts):
        beside = {
            other
            for name in reads[place]
            if not _is_number(graph, name)
            for other in readers[name]
            if other > place
        }
        after = set(readers.get(part[-1].outputs[0], ())) - {place}
        for other in (*sorted(beside - after)[:_MOST_PARTNERS], *sorted(after)):
            pair = _pair(surroundings, (*part, *parts[other]))
            if pair is not None:
                yield pair


class Surroundings:
    """What is around some nodes of a model."""

    def __init__(self, graph: Graph) -> None:
        self._nodes = graph.nodes
        self._place = {name: n for n, node in enumerate(graph.nodes) for name in node.outputs}
        self._returned = frozenset(graph.outputs)
        self._readers: dict[str, set[int]] = {}
        for place, node in enumerate(graph.nodes):
            for name in node.inputs:
                self._readers.setdefault(name, set()).add(place)

    def places(self, nodes: Sequence[Node]) -> list[int]:
        """Return where nodes are in the model, each once, in order."""
        return sorted({self._place[node.outputs[0]] for node in nodes})

    def outputs_of(self, places: Sequence[int]) -> tuple[str, ...]:
        """Return the results of nodes that others read, or that the model returns, in order."""
        inner = frozenset(places)
        names = (name for place in places for name in self._nodes[place].outputs)
        return tuple(n for n in names if n in self._returned or self._readers.get(n, set()) - inner)

    def is_convex(self, places: Sequence[int]) -> bool:
        """Return whether none of the nodes, in order, needs what others compute of their results."""
        inner = frozenset(places)
        own = {name for place in places for name in self._nodes[place].outputs}
        beyond: set[str] = set()
        for place in range(places[0], places[-1] + 1):
            node = self._nodes[place]
            if place in inner:
                if not beyond.isdisjoint(node.inputs):
                    return False
            elif not own.isdisjoint(node.inputs) or not beyond.isdisjoint(node.inputs):
                beyond.update(node.outputs)
        return True

    def nodes_at(self, places: Sequence[int]) -> tuple[Node, ...]:
        """Return the nodes at some places."""
        return tuple(self._nodes[place] for place in places)


def _pair(surroundings: Surroundings, members: Sequence[Node]) -> Pair | None:
    places = surroundings.places(members)
    if len(places) < len(members):
        return None  # they have nodes in common
    outputs = surroundings.outputs_of(places)
    if len(outputs) != MOST_OUTPUTS or not surroundings.is_convex(places):
        return None
    return Pair(surroundings.nodes_at(places), outputs)


def _is_number(graph: Graph, name: str) -> bool:
    kind = graph.types[name]
    return name in graph.weights and isinstance(kind, TensorType) and kind.size == 1
