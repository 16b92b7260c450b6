"""Applications that an ONNX file has already: they are written as they were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from relational_tensat.formats.onnx_opaque import input_names
from relational_tensat.formats.onnx_origin import Origin, Unit
from relational_tensat.tensor import Array, AttrValue, Graph, Node

#: A node by what it is: two that are equal compute the same.
_Key = tuple[str, tuple[tuple[str, AttrValue], ...], tuple[str, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """A node of the file, or call of a function, that computes values of a graph.

    Attributes:
        inputs, outputs: values of the graph, or of ``Origin.known``, by their names in the file.
    """

    unit: Unit
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]


class _OtherNodeError(Exception):
    """The graph's nodes are not those that a unit of the file became."""


def find_kept(graph: Graph, origin: Origin) -> dict[str, Kept]:
    """Return what computes values of the graph in the file, by these values.

    A node of the graph is the file's if it is the same operator with the same attributes on operands of
    the same types; the operands may have become others.
    """
    finder = _Finder(graph, origin)
    kept: dict[str, Kept] = {}
    for units in (origin.calls, origin.units):
        for node in graph.nodes:
            if kept.keys().isdisjoint(node.outputs):
                match = finder.find(node, units)
                if match is not None:
                    kept.update((value, match) for value in match.outputs.values())
    return kept


def kept_alike(found: Sequence[Mapping[str, Kept]]) -> list[dict[str, Kept]]:
    """Return what is kept of a graph at several sizes where that is the same at all.

    Args:
        found: by the graph's values, at each size.
    """
    alike = [
        value for value in found[0] if len({_spelling(kept.get(value)) for kept in found}) == 1
    ]
    return [{value: kept[value] for value in alike} for kept in found]


def _spelling(kept: Kept | None) -> tuple[object, ...]:
    """Return what is equal for the same node of the file on the same values."""
    if kept is None:
        return ()
    return kept.unit.place, tuple(kept.inputs.items()), tuple(sorted(kept.outputs.items()))


class _Finder:
    def __init__(self, graph: Graph, origin: Origin) -> None:
        self._graph = graph
        self._origin = origin
        self._producers = {name: node for node in graph.nodes for name in node.outputs}
        self._alike: dict[_Key, Node] = {}
        for node in origin.graph.nodes:
            self._alike.setdefault(_key(node), node)

    def find(self, node: Node, units: Mapping[str, Unit]) -> Kept | None:
        """Return what computes a node's values in the file, None if nothing does."""
        for original in self._candidates(node):
            unit = next((units[name] for name in original.outputs if name in units), None)
            if unit is not None:
                try:
                    return _Binding(self._graph, self._origin, self._producers, unit).bind(
                        node, original
                    )
                except _OtherNodeError:
                    continue
        return None

    def _candidates(self, node: Node) -> Iterable[Node]:
        """Yield the original's nodes that a node may be: those of its values, and one that equals it."""
        producers = self._origin.producers
        yield from (producers[name] for name in node.outputs[:1] if name in producers)
        alike = self._alike.get(_key(node))
        if alike is not None:
            yield alike


class _Binding:
    """The values of a unit's names in a graph, found by following both."""

    def __init__(
        self, graph: Graph, origin: Origin, producers: Mapping[str, Node], unit: Unit
    ) -> None:
        self._graph = graph
        self._origin = origin
        self._producers = producers
        self._unit = unit
        self._bound: dict[str, str] = {}

    def bind(self, node: Node, original: Node) -> Kept:
        """Return the unit with what its names stand for, given one of its nodes and the graph's.

        Raises:
            _OtherNodeError: the graph has not all that the unit became.
        """
        outputs = {name for name in self._unit.node.output if name in self._origin.producers}
        self._same(node, original)
        for name in outputs - self._bound.keys():
            producer = self._producers.get(name)
            if producer is not None:
                self._same(producer, self._origin.producers[name])
        inputs = dict.fromkeys(input_names(self._unit.node))
        for name in inputs:
            if name not in self._bound:
                self._bind(name, self._unread(name))
        bound = self._bound
        return Kept(
            self._unit,
            {name: bound[name] for name in inputs},
            {name: bound[name] for name in outputs if name in bound},
        )

    def _same(self, node: Node, original: Node) -> None:
        """Bind the values of two nodes to each other; they must be the same application."""
        is_same = (node.op, len(node.inputs), len(node.outputs), node.attrs) == (
            original.op,
            len(original.inputs),
            len(original.outputs),
            original.attrs,
        )
        if not is_same:
            raise _OtherNodeError
        for name, value in zip(original.outputs, node.outputs, strict=True):
            self._bind(name, value)
        for name, value in zip(original.inputs, node.inputs, strict=True):
            self._operand(name, value)

    def _operand(self, name: str, value: str) -> None:
        if name not in self._unit.inner:
            if self._graph.types[value] != self._origin.graph.types[name]:
                raise _OtherNodeError
            self._bind(name, value)
            return
        producer, original = self._producers.get(value), self._origin.producers.get(name)
        if original is None:
            self._check_same_constant(name, value)
        elif producer is not None:
            self._same(producer, original)
        elif (
            name == value
        ):  # it is known in this graph, and so are the constants that it is made of
            self._folded(name)
        else:
            raise _OtherNodeError

    def _check_same_constant(self, name: str, value: str) -> None:
        weight, known = self._graph.weights.get(value), self._origin.known.get(name)
        if weight is None or known is None or weight.type != known.type:
            raise _OtherNodeError
        if weight.data is not known.data and not _are_equal(weight.data, known.data):
            raise _OtherNodeError

    def _folded(self, name: str) -> None:
        original = self._origin.producers.get(name)
        if original is None:
            self._constant(name)
            return
        for operand in original.inputs:
            if operand in self._unit.inner:
                self._folded(operand)
            else:
                self._bind(operand, self._constant(operand))

    def _unread(self, name: str) -> str:
        """Return the value of an operand that the graph's nodes do not take: it decided what they are."""
        if name in self._graph.types and name in self._origin.graph.types:
            return name
        return self._constant(name)

    def _constant(self, name: str) -> str:
        """Return the value of a constant of the file: itself."""
        weight = self._graph.weights.get(name)
        known = self._origin.known.get(name)
        is_taken = name in self._graph.types and weight is None
        if known is None or known.data is None or is_taken:
            raise _OtherNodeError
        return name

    def _bind(self, name: str, value: str) -> None:
        if self._bound.setdefault(name, value) != value:
            raise _OtherNodeError


def _are_equal(a: Array | None, b: Array | None) -> bool:
    return a is not None and b is not None and a.tobytes() == b.tobytes()


def _key(node: Node) -> _Key:
    return node.op, tuple(node.attrs.items()), node.inputs
