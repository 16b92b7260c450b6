"""Products of weights are applied factor by factor instead of being multiplied out.

An optimized graph may multiply with ``u·v + c``, all three weights: what runs is one product, the weight
is made beforehand. To check it, making it would be most of the work (ViT-Huge: 3,700 Gflop against 110
for both graphs). What is multiplied with it is the same: ``a·(u·v + c) = (a·u)·v + a·c``.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from relational_tensat.tensor import Graph, Node, TensorType, build_graph, tensors_of

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
