"""Graphs evaluated together: what two of them have in common is computed once.

Values are the same where they are the same operator with the same attributes applied to the same
operands, down to the inputs and weights: nothing else is assumed. What the graphs return is still
compared element by element.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from relational_tensat.base.errors import VerificationError
from relational_tensat.tensor import Array, Graph, Node, ValueType, Weight
from relational_tensat.verify.evaluate import Weights
from relational_tensat.verify.factors import apply_by_factors
from relational_tensat.verify.outputs import compute_outputs
from relational_tensat.verify.unknown_operators import UnknownOperators

#: What makes a node's results what they are: operator, operands, attributes as text (1 is not 1.0).
_Key: TypeAlias = tuple[str, tuple[str, ...], str]


@dataclass(frozen=True, slots=True, eq=False)
class Together:
    """Several graphs of the same inputs as one.

    Attributes:
        graph: returns what the original returns, then what each other graph returns. The original's
            values and weights have their own names in it.
        counts: how many tensors each graph returns.
        taken_apart: how many products of weights are applied factor by factor; none of the original's.
    """

    graph: Graph
    counts: tuple[int, ...]
    taken_apart: int = 0

    def compute(
        self,
        inputs: Mapping[str, Array],
        weights: Weights,
        unknown: UnknownOperators | None = None,
    ) -> list[list[Array]]:
        """Return the tensors that each graph returns, in float64.

        Args:
            unknown: computes opaque operators.

        Raises:
            InputError: an operator of one of them cannot be computed.
        """
        tensors = iter(compute_outputs(self.graph, inputs, weights, unknown))
        return [[next(tensors) for _ in range(count)] for count in self.counts]


def put_together(original: Graph, optimized: Graph, folded: Graph | None = None) -> Together:
    """Return graphs of the same inputs as one, in which equal values are one value.

    Args:
        optimized: refers to the original's weights by their names.
        folded: has weights of its own; those that are the same array as the original's are these.

    Raises:
        VerificationError: the optimized graph has a weight that the original does not have.
    """
    merger = _Merger(original)
    outputs = [original.outputs, merger.add(optimized, merger.weights_by_name(optimized))]
    graphs = [original, optimized]
    if folded is not None:
        outputs.append(merger.add(folded, merger.own_weights(folded)))
        graphs.append(folded)
    graph = merger.graph(name for names in outputs for name in names)
    applied, taken_apart = apply_by_factors(graph, fixed=original.types)
    if taken_apart:  # (a·u)·v of a·(u·v) may be what the original computes
        merger = _Merger(original, applied.weights)
        graph = merger.graph(merger.add(applied, {name: name for name in applied.weights}))
    graph = replace(graph, nodes=tuple(_interleave(graph.nodes, len(original.nodes))))
    return Together(graph, tuple(len(part.output_types()) for part in graphs), taken_apart)


class _Merger:
    """The nodes and weights of the graphs so far.

    The first graph's nodes stay as they are; where two of them are equal, the first is shared.
    """

    def __init__(self, first: Graph, weights: Mapping[str, Weight] | None = None) -> None:
        """Begin with a graph.

        Args:
            weights: more than the graph's own; those that nodes of others use, too.
        """
        self._first = first
        self.weights: dict[str, Weight] = {**first.weights, **(weights or {})}
        kinds = {name: weight.type for name, weight in self.weights.items()}
        self.types: dict[str, ValueType] = {**first.types, **kinds}
        self.nodes: list[Node] = list(first.nodes)
        self._results: dict[_Key, tuple[str, ...]] = {}
        for node in first.nodes:
            self._results.setdefault(_key(node, node.inputs), node.outputs)

    def add(self, graph: Graph, weights: Mapping[str, str]) -> tuple[str, ...]:
        """Add a graph, whose weights are those of the given names here; return what it returns."""
        names = {**{name: name for name in graph.inputs}, **weights}
        for node in graph.nodes:
            operands = tuple(names[name] for name in node.inputs)
            key = _key(node, operands)
            if key not in self._results:
                results = tuple(self._name(name, graph.types[name]) for name in node.outputs)
                self._results[key] = results
                self.nodes.append(replace(node, inputs=operands, outputs=results))
            names.update(zip(node.outputs, self._results[key], strict=True))
        return tuple(names[name] for name in graph.outputs)

    def weights_by_name(self, graph: Graph) -> dict[str, str]:
        """Return, for a graph's weights, those of the first graph: they have the same names.

        Raises:
            VerificationError: there is none of that name and type.
        """
        for name, weight in graph.weights.items():
            if name not in self.weights or self.weights[name].type != weight.type:
                raise VerificationError(
                    f"the optimized graph cannot be computed: the original has no weight {name!r} "
                    f"of type {weight.type}"
                )
        return {name: name for name in graph.weights}

    def own_weights(self, graph: Graph) -> dict[str, str]:
        """Return names for a graph's weights; those that are others than the first graph's are added."""
        names = {}
        for name, weight in graph.weights.items():
            namesake = self.weights.get(name)
            if (
                namesake is not None
                and namesake.type == weight.type
                and namesake.data is weight.data
            ):
                names[name] = name
            else:
                names[name] = self._name(name, weight.type)
                self.weights[names[name]] = weight
        return names

    def graph(self, outputs: Iterable[str]) -> Graph:
        """Return all as one graph, which returns the given values."""
        return replace(
            self._first,
            weights=self.weights,
            nodes=tuple(self.nodes),
            outputs=tuple(outputs),
            types=self.types,
        )

    def _name(self, base: str, kind: ValueType) -> str:
        """Return a name that no value has yet, and note its type."""
        name, count = base, 1
        while name in self.types:
            count += 1
            name = f"{base}'{count}"
        self.types[name] = kind
        return name


def _key(node: Node, operands: tuple[str, ...]) -> _Key:
    return node.op, operands, repr(sorted(node.attrs.items()))


def _interleave(nodes: Sequence[Node], n_first: int) -> list[Node]:
    """Return nodes in an order in which few values and weights are waiting at a time.

    The first graph's nodes keep their order. A node of a later graph comes as soon as the first graph
    has computed its operands and used its weights; one that needs none of these, just before what
    first needs it.

    Args:
        n_first: how many of the nodes, which are in topological order, are the first graph's.
    """
    place: list[int] = []
    of_value: dict[str, int] = {}  # where it is computed, or first used
    for index, node in enumerate(nodes):
        if index < n_first:
            at = index
            for name in node.inputs:
                of_value.setdefault(name, at)
        else:
            at = max((of_value.get(name, -1) for name in node.inputs), default=-1)
        place.append(at)
        of_value |= dict.fromkeys(node.outputs, at)
    producer = {name: index for index, node in enumerate(nodes) for name in node.outputs}
    slots = [n_first if at < 0 else at for at in place]
    for index in reversed(range(n_first, len(nodes))):
        for name in nodes[index].inputs:
            operand = producer.get(name)
            if operand is not None and place[operand] < 0:
                slots[operand] = min(slots[operand], slots[index])
    return [nodes[index] for index in sorted(range(len(nodes)), key=slots.__getitem__)]
