"""What identifies a graph's measurements: its configurations at inference, and the hash of its contents.

Graphs of one hash run by the same kernels, whatever their values are called.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from relational_tensat.cost.device import Configuration
from relational_tensat.cost.key import configuration_of
from relational_tensat.tensor import Array, Graph
from relational_tensat.tensor.inference import inference_nodes, weight_only_values
from relational_tensat.tensor.uses import array_digest


class Contents:
    """Hashes of graphs; each is made once, and what several have in common, as weights, is read once."""

    def __init__(self) -> None:
        self._graphs: dict[Graph, str] = {}
        self._arrays: dict[int, tuple[Array, str]] = {}

    def of(self, graph: Graph) -> str:
        """Return the hash of a graph: of its operators, types, weights, outputs and operator sets.

        A value's hash is made of its operator's and its operands' (Merkle 1987); the graph's is of those
        of all nodes, so that what is computed twice counts twice.
        """
        if graph not in self._graphs:
            self._graphs[graph] = self._of_new(graph)
        return self._graphs[graph]

    def _of_new(self, graph: Graph) -> str:
        values = {name: _digest("input", name, kind) for name, kind in graph.inputs.items()}
        for name, weight in graph.weights.items():
            data = "" if weight.data is None else self._of_array(weight.data)
            values[name] = _digest("weight", weight.type, data)
        nodes = []
        for node in graph.nodes:
            operands = [values[name] for name in node.inputs]
            kinds = [graph.types[name] for name in node.outputs]
            nodes.append(_digest(node.op, sorted(node.attrs.items()), kinds, operands))
            for place, name in enumerate(node.outputs):
                values[name] = _digest(nodes[-1], place)
        outputs = [values[name] for name in graph.outputs]
        return _digest(sorted(nodes), outputs, sorted(graph.metadata.items()))

    def of_arrays(self, arrays: Mapping[str, Array]) -> str:
        """Return the hash of values by name."""
        return _digest(*((name, self._of_array(array)) for name, array in sorted(arrays.items())))

    def _of_array(self, array: Array) -> str:
        key = id(array)
        if key not in self._arrays:  # kept, so that no other array gets its number
            self._arrays[key] = array, array_digest(array).hex()
        return self._arrays[key][1]


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def graph_configurations(graph: Graph) -> Iterator[Configuration]:
    """Yield the configuration of each node that runs at inference, in order."""
    constant = weight_only_values(graph)
    for node, inputs, output in inference_nodes(graph):
        computed = [n for n, name in enumerate(node.inputs) if name not in constant]
        yield configuration_of(node.op, inputs, output, node.attrs, computed)
