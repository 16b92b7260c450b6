"""The original graph as its e-nodes, before anything is explored."""

from __future__ import annotations

from typing import NamedTuple

from relational_tensat.egraph.egraph import EGraph


class LoadedNode(NamedTuple):
    """An e-node of the original graph, which is a class of its own; both have one id."""

    signature: int
    children: tuple[int, ...]


class LoadedGraph:
    """E-nodes by id; operands have lower ids than what uses them.

    Attributes:
        nodes: all of them.
        consumers: per e-node, those that use it.
        on_inputs: those that depend on an input of the graph; the others are known before inference
            (or depend on nothing, as random numbers do).
        gathering: the tuples at the end that only gather what the graph returns.
    """

    def __init__(self, egraph: EGraph) -> None:
        catalogue = egraph.catalogue
        self._ops = [
            catalogue.symbols[signature.symbol - 1].op for signature in catalogue.signatures
        ]
        self._types = [signature.type for signature in catalogue.signatures]
        self._is_tuple = [isinstance(kind, tuple) for kind in catalogue.types]
        rows = egraph.database.execute(
            "-- the original graph\nSELECT id, signature, c0, c1, c2, c3, c4 FROM enode ORDER BY id"
        )
        self.nodes = {
            row[0]: LoadedNode(row[1], tuple([child for child in row[2:] if child])) for row in rows
        }
        self.consumers: dict[int, list[int]] = {node_id: [] for node_id in self.nodes}
        self.on_inputs: set[int] = set()
        for node_id, node in self.nodes.items():
            for child in node.children:
                self.consumers[child].append(node_id)
            if self.op(node_id) == "input" or not self.on_inputs.isdisjoint(node.children):
                self.on_inputs.add(node_id)
        self.gathering: set[int] = set()
        for node_id in reversed(self.nodes):
            if self.op(node_id) == "noop" and self.gathering.issuperset(self.consumers[node_id]):
                self.gathering.add(node_id)

    def op(self, node_id: int) -> str:
        """Return the operator of an e-node."""
        return self._ops[self.nodes[node_id].signature - 1]

    def type_id(self, node_id: int) -> int:
        """Return the id of an e-node's type."""
        return self._types[self.nodes[node_id].signature - 1]

    def is_tensor(self, node_id: int) -> bool:
        """Whether an e-node is one tensor, and no tuple."""
        return not self._is_tuple[self.type_id(node_id) - 1]

    def is_leaf(self, node_id: int) -> bool:
        """Whether an e-node has no operands."""
        return not self.nodes[node_id].children

    def is_constant(self, node_id: int) -> bool:
        """Whether an e-node is a leaf that its signature describes in full: no input, no weight."""
        return self.is_leaf(node_id) and self.op(node_id) not in ("input", "weight")
