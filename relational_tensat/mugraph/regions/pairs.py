"""Parts of a model as one with several results: one reads what another gives, or all read the same.

Together they are convex: nothing outside lies between two of their nodes, so one kernel that gives both
values needs neither of them before it runs. Three parts that read the same, as queries, keys and values do,
are regions of ``kernels search``; rules have two sources at most, so no kernel of a run gives three values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from relational_tensat.tensor import Graph, Node, TensorType

#: The rules of kernels have as many sources: so many values can a kernel give.
MOST_OUTPUTS = 2
#: Of the parts that read what one reads, so many that come next are tried with it.
_MOST_PARTNERS = 8
#: Of the parts that read the same, so many of the smallest are tried three at a time.
_MOST_READERS = 24


@dataclass(frozen=True, slots=True)
class Pair:
    """Nodes that others read several results of.

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
    reads = list(map(_read, parts))
    readers = _readers(reads)
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


def triples(graph: Graph, parts: Sequence[Sequence[Node]]) -> Iterator[Pair]:
    """Yield three of a model's parts at a time that read the same and that a kernel may stand for.

    Args:
        graph: the model.
        parts: nodes in topological order, of which only the last one's result is read by others.
    """
    surroundings = Surroundings(graph)
    readers = _readers(list(map(_read, parts)))
    known: set[tuple[int, ...]] = set()
    for name in sorted(readers):
        if _is_number(graph, name):
            continue
        nearest = sorted(readers[name], key=lambda place: len(parts[place]))[:_MOST_READERS]
        for three in combinations(sorted(nearest), 3):
            members = [node for place in three for node in parts[place]]
            if three not in known and (group := _pair(surroundings, members, 3)) is not None:
                known.add(three)
                yield group


def _read(part: Sequence[Node]) -> set[str]:
    """Return what nodes read."""
    return {name for node in part for name in node.inputs}


def _readers(reads: Sequence[set[str]]) -> dict[str, list[int]]:
    """Return the places of the parts that read a value, by its name, from what each part reads."""
    readers: dict[str, list[int]] = {}
    for place, names in enumerate(reads):
        for name in names:
            readers.setdefault(name, []).append(place)
    return readers


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


def _pair(
    surroundings: Surroundings, members: Sequence[Node], values: int = MOST_OUTPUTS
) -> Pair | None:
    places = surroundings.places(members)
    if len(places) < len(members):
        return None  # they have nodes in common
    outputs = surroundings.outputs_of(places)
    if len(outputs) != values or not surroundings.is_convex(places):
        return None
    return Pair(surroundings.nodes_at(places), outputs)


def _is_number(graph: Graph, name: str) -> bool:
    kind = graph.types[name]
    return name in graph.weights and isinstance(kind, TensorType) and kind.size == 1
