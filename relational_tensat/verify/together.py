"""Graphs evaluated together: their common parts are computed once.

Values are the same where they are the same operator with the same attributes applied to the same
operands, down to the inputs and weights: nothing else is assumed. The outputs of the graphs are still
compared element by element.

Products of weights are applied factor by factor instead of being multiplied out. An optimized graph may
multiply with ``u·v + c``, all three weights: one product runs, and the weight is made beforehand. To check
it, making it would be most of the work (ViT-Huge: 3,700 Gflop against 110 for both graphs). What is
multiplied with it is the same: ``a·(u·v + c) = (a·u)·v + a·c``.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from relational_tensat.base.errors import VerificationError
from relational_tensat.tensor import (
    Array,
    Graph,
    Node,
    TensorType,
    ValueType,
    Weight,
    build_graph,
    tensors_of,
)
from relational_tensat.verify.evaluate import Weights
from relational_tensat.verify.outputs import compute_together
from relational_tensat.verify.unknown_operators import UnknownOperators

#: The operand that is a product's right factor.
_RIGHT = 1


def apply_by_factors(graph: Graph, fixed: Iterable[str] = ()) -> tuple[Graph, int]:
    """Return the graph with products of weights taken apart where that is less work, and their number.

    A product is taken apart if nothing but right factors of products are made of it. Only values of
    floats are concerned: others have no rounding, but overflow.

    Args:
        fixed: values that are to be computed as they are.
    """
    parts = _Parts(graph, fixed)
    taken_apart = sum(parts.take_apart(node) for node in reversed(graph.nodes))
    if not taken_apart:
        return graph, 0
    nodes = [node for node in parts.nodes.values() if node is not None]
    applied = build_graph(
        graph.name, graph.inputs, graph.weights, nodes, graph.outputs, graph.metadata
    )
    return applied, taken_apart


class _Parts:
    """The graph while it is changed.

    Attributes:
        nodes: by the first of their outputs; None for those that are not needed any more.
    """

    def __init__(self, graph: Graph, fixed: Iterable[str]) -> None:
        self.nodes: dict[str, Node | None] = {node.outputs[0]: node for node in graph.nodes}
        self._types = dict(graph.types)
        self._constants = set(graph.weights)
        self._readers: dict[str, set[str]] = defaultdict(set)
        self._fixed_values = {*graph.outputs}
        fixed = set(fixed)
        for node in graph.nodes:
            if self._constants.issuperset(node.inputs):
                self._constants.update(node.outputs)
            for name in node.inputs:
                self._readers[name].add(node.outputs[0])
            if fixed.intersection(node.outputs):
                self._fixed_values.update((*node.inputs, *node.outputs))
        self._products: dict[tuple[str, str], str] = {}

    def take_apart(self, node: Node) -> bool:
        """Take a node apart if it is a product of weights and that is less work; return whether it was."""
        name = node.outputs[0]
        readers = [self._node(reader) for reader in sorted(self._readers[name])]
        if not (readers and self._is_product(node) and name not in self._fixed_values):
            return False
        if not all(_multiplies(reader, name) for reader in readers):
            return False
        u, v = (self._type(operand_name).shape for operand_name in node.inputs[:2])
        rows = sum(math.prod(self._type(reader.inputs[0]).shape[:-1]) for reader in readers)
        product_flops = u[0] * u[1] * v[1] + rows * u[0] * v[1]
        factor_flops = rows * (u[0] * u[1] + v[0] * v[1]) + rows * u[0] * v[1] * (
            len(node.inputs) == 3
        )
        if factor_flops >= product_flops:
            return False
        for reader in readers:
            self._apply(reader, node)
        for operand in node.inputs:
            self._readers[operand].discard(name)
        self.nodes[name] = None
        return True

    def _is_product(self, node: Node) -> bool:
        """Whether a node is ``u·v`` or ``u·v + c`` of matrices of floats, all constant."""
        if node.op != "matmul" or node.attrs["act"] != "none":
            return False
        kinds = [self._type(name) for name in (*node.inputs, node.outputs[0])]
        return (
            self._constants.issuperset(node.inputs)
            and all(kind.rank == 2 and kind.is_float for kind in kinds)
            and kinds[2:] in ([kinds[-1]], [kinds[-1], kinds[-1]])
        )

    def _apply(self, reader: Node, product: Node) -> None:
        """Let a node that multiplies with a product multiply with its factors, one after the other."""
        left, bias = reader.inputs[0], reader.inputs[2:]
        factor, last_factor, *addends = product.inputs
        result = self._type(reader.outputs[0])
        if addends:
            sum_name = self._fresh(f"{left} · {addends[0]}")
            self._add(
                Node("matmul", (left, addends[0], *bias), (sum_name,), {"act": "none"}), result
            )
            bias = (sum_name,)
        key = left, factor
        if key not in self._products:
            self._products[key] = self._fresh(f"{left} · {factor}")
            kind = self._type(left)
            columns = self._type(factor).shape[-1]
            self._add(
                Node("matmul", key, (self._products[key],), {"act": "none"}),
                kind.with_shape((*kind.shape[:-1], columns)),
            )
        self._remove_reader(reader)
        self._add(replace(reader, inputs=(self._products[key], last_factor, *bias)), result)

    def _add(self, node: Node, kind: TensorType) -> None:
        name = node.outputs[0]
        self.nodes[name] = node
        self._types[name] = kind
        if self._constants.issuperset(node.inputs):
            self._constants.add(name)
        for operand in node.inputs:
            self._readers[operand].add(name)

    def _remove_reader(self, node: Node) -> None:
        for operand in node.inputs:
            self._readers[operand].discard(node.outputs[0])

    def _node(self, name: str) -> Node:
        node = self.nodes[name]
        if node is None:
            raise KeyError(name)
        return node

    def _type(self, name: str) -> TensorType:
        return tensors_of(self._types[name])[0]

    def _fresh(self, name: str) -> str:
        while name in self._types:
            name += "'"
        return name


def _multiplies(node: Node, name: str) -> bool:
    """Whether a node multiplies with a value from the right, and uses it for nothing else."""
    return node.op == "matmul" and node.inputs[_RIGHT] == name and node.inputs.count(name) == 1


#: The parts that decide a node's results: operator, operands, attributes as text (1 is not 1.0).
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
        draws: Sequence[Mapping[str, Array]],
        weights: Weights,
        unknown: UnknownOperators | None = None,
    ) -> list[list[list[Array]]]:
        """Return, for each inputs, the tensors that each graph returns, in float64.

        Args:
            unknown: computes opaque operators.

        Raises:
            InputError: an operator of one of them cannot be computed.
        """
        results = map(iter, compute_together(self.graph, draws, weights, unknown))
        return [
            [[next(tensors) for _ in range(count)] for count in self.counts] for tensors in results
        ]


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
            VerificationError: the graph has no weight of that name and type.
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

    The first graph's nodes keep their order. A node of a later graph comes as soon as the first graph has
    computed its operands and used its weights. A node that needs none of these comes just before its first
    reader.

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
