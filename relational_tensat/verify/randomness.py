"""Which outputs depend on operators that draw random numbers, and so cannot be compared."""

from __future__ import annotations

from relational_tensat.tensor import Graph, tensors_of


def random_positions(graph: Graph) -> frozenset[int]:
    """Return the positions, among the tensors that the graph returns, that are random.

    Operators that draw random numbers are opaque and carry a key that keeps them apart.
    """
    random: set[str] = set()
    for node in graph.nodes:
        draws = node.op == "opaque" and node.attrs.get("key", "") != ""
        if draws or any(name in random for name in node.inputs):
            random.update(node.outputs)
    positions: set[int] = set()
    position = 0
    for name in graph.outputs:
        width = len(tensors_of(graph.types[name]))
        if name in random:
            positions.update(range(position, position + width))
        position += width
    return frozenset(positions)
