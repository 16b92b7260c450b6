"""Parts of a model as one with several results: one reads what another gives, or all read the same.

Together they are convex: nothing outside lies between two of their nodes, so one kernel that gives all
values needs none of them before it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from relational_tensat.tensor import Graph, Node, TensorType

#: Of the parts that read what one reads, so many that come next are tried with it.
_MOST_PARTNERS = 8
#: The numbers of parts tried at a time, the smallest ones that read the same: queries, keys and values are
#: three, the gates of a recurrent cell four.
_MOST_READERS = {3: 24, 4: 12}


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes that others read several results of.

    Attributes:
        nodes: in topological order.
        outputs: the results, in that order.
    """

    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]


def groups(graph: Graph, parts: Sequence[Sequence[Node]]) -> Iterator[Group]:
    """Yield the groups of a model's parts that a kernel may stand for: two, then three, then four.

    Args:
        graph: the model.
        parts: nodes in topological order, of which only the last one's result is read by others.
    """
    surroundings = Surroundings(graph)
    reads = [{name for node in part for name in node.inputs} for part in parts]
    readers: dict[str, list[int]] = {}
    for place, names in enumerate(reads):
        for name in names:
            readers.setdefault(name, []).append(place)
    places = [
        *_pairs(graph, parts, reads, readers),
        *_readers_of_one(graph, parts, readers),
    ]
    for members in dict.fromkeys(places):
        nodes = [node for place in members for node in parts[place]]
        group = surroundings.group(nodes, len(members))
        if group is not None:
            yield group


def _pairs(
    graph: Graph,
    parts: Sequence[Sequence[Node]],
    reads: Sequence[set[str]],
    readers: Mapping[str, Sequence[int]],
) -> Iterator[tuple[int, ...]]:
    """Yield two parts that read the same, or of which one reads the other, by their places.

    Args:
        graph: the model.
        parts: as for ``groups``.
        reads: the values that each reads.
        readers: the places of the parts that read a value.
    """
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
            yield place, other


def _readers_of_one(
    graph: Graph, parts: Sequence[Sequence[Node]], readers: Mapping[str, Sequence[int]]
) -> Iterator[tuple[int, ...]]:
    """Yield three parts and more that read the same value, by their places."""
    for values, most in _MOST_READERS.items():
        for name in sorted(readers):
            if not _is_number(graph, name):
                nearest = sorted(readers[name], key=lambda place: len(parts[place]))[:most]
                yield from combinations(sorted(nearest), values)


class Surroundings:
    """The nodes around some nodes of a model."""

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

    def group(self, members: Sequence[Node], values: int) -> Group | None:
        """Return nodes as a group of so many values; None if they make no group, or one is there twice."""
        places = self.places(members)
        if len(places) < len(members):
            return None  # they have nodes in common
        outputs = self.outputs_of(places)
        if len(outputs) != values or not self.is_convex(places):
            return None
        return Group(tuple(self._nodes[place] for place in places), outputs)


def _is_number(graph: Graph, name: str) -> bool:
    kind = graph.types[name]
    return name in graph.weights and isinstance(kind, TensorType) and kind.size == 1
