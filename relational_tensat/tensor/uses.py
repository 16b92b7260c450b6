"""What operators do with the values of a graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from relational_tensat.tensor.graph import Graph, Node
from relational_tensat.tensor.operators import Use, get_operator


class Uses:
    """What operators do with a value, and the nodes that do."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._consumers: dict[str, list[tuple[Use, Node]]] = defaultdict(list)
        for node in graph.nodes:
            operator = get_operator(node.op)
            for operand, name in enumerate(node.inputs):
                self._consumers[name].append((operator.use_of(operand), node))

    def of(self, name: str) -> Iterator[tuple[Use, Node]]:
        """Yield the uses of a value, also behind operators that only move its elements."""
        pending, visited = [name], {name}
        while pending:
            for use, node in self._consumers[pending.pop()]:
                if use not in (Use.MOVED, Use.JOINED):
                    yield use, node
                    continue
                outputs = [output for output in node.outputs if output not in visited]
                pending += outputs
                visited.update(outputs)

    def index_range(self, name: str) -> int:
        """Return the count of values that integers may have: what all indexed axes have, or 2."""
        lengths = []
        for use, node in self.of(name):
            if use is Use.INDEX:
                types = tuple(self._graph.types[operand] for operand in node.inputs)
                lengths.append(get_operator(node.op).index_range(types, node.attrs))
        return min(lengths, default=2)
