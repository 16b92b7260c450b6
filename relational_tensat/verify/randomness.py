"""Which outputs depend on operators that draw random numbers, and so cannot be compared."""

from __future__ import annotations

from relational_tensat.tensor import Graph, tensors_of
from relational_tensat.tensor.operators import get_operator


def random_positions(graph: Graph) -> frozenset[int]:
    """Return the positions, among the tensors that the graph returns, that are random."""
    random: set[str] = set()
    for node in graph.nodes:
        draws = get_operator(node.op).is_random(node.attrs)
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
