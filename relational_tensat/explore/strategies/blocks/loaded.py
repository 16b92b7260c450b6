"""The original graph as its e-nodes say it, before anything is explored."""

from __future__ import annotations

from typing import NamedTuple

from relational_tensat.egraph.egraph import EGraph


class LoadedNode(NamedTuple):
    """An e-node of the original graph, which is a class of its own; both have one number."""

    signature: int
    children: tuple[int, ...]


class LoadedGraph:
    """E-nodes by number; operands have lower numbers than what uses them.

    Attributes:
        nodes: all of them.
        consumers: per e-node, those that use it.
        on_inputs: those that depend on an input of the graph; the others are known before inference
            (or depend on nothing, as random numbers do).
        gathering: the tuples at the end that only gather what the graph returns.
    """

    def __init__(self, egraph: EGraph) -> None:
        catalogue = egraph.catalogue
        self._ops = [catalogue.symbols[each.symbol - 1].op for each in catalogue.signatures]
        self._types = [each.type for each in catalogue.signatures]
        self._is_tuple = [isinstance(kind, tuple) for kind in catalogue.types]
        rows = egraph.database.execute(
            "-- the original graph\nSELECT id, signature, c0, c1, c2, c3, c4 FROM enode ORDER BY id"
        )
        self.nodes = {
            row[0]: LoadedNode(row[1], tuple([child for child in row[2:] if child])) for row in rows
        }
        self.consumers: dict[int, list[int]] = {number: [] for number in self.nodes}
        self.on_inputs: set[int] = set()
        for number, node in self.nodes.items():
            for child in node.children:
                self.consumers[child].append(number)
            if self.op(number) == "input" or not self.on_inputs.isdisjoint(node.children):
                self.on_inputs.add(number)
        self.gathering: set[int] = set()
        for number in reversed(self.nodes):
            if self.op(number) == "noop" and self.gathering.issuperset(self.consumers[number]):
                self.gathering.add(number)

    def op(self, number: int) -> str:
        """Return the operator of an e-node."""
        return self._ops[self.nodes[number].signature - 1]

    def type_number(self, number: int) -> int:
        """Return the number of an e-node's type."""
        return self._types[self.nodes[number].signature - 1]

    def is_tensor(self, number: int) -> bool:
        """Whether an e-node is one tensor, and no tuple."""
        return not self._is_tuple[self.type_number(number) - 1]

    def is_leaf(self, number: int) -> bool:
        """Whether an e-node has no operands."""
        return not self.nodes[number].children

    def is_constant(self, number: int) -> bool:
        """Whether an e-node is a leaf that its signature tells all of: no input, no weight."""
        return self.is_leaf(number) and self.op(number) not in ("input", "weight")
