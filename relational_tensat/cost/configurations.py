"""The configurations that a graph runs at inference."""

from __future__ import annotations

from collections.abc import Iterator

from relational_tensat.cost.device import Configuration
from relational_tensat.cost.key import configuration_of
from relational_tensat.tensor import Graph
from relational_tensat.tensor.inference import inference_nodes, weight_only_values


def graph_configurations(graph: Graph) -> Iterator[Configuration]:
    """Yield the configuration of each node that runs at inference, in order."""
    constant = weight_only_values(graph)
    for node, inputs, output in inference_nodes(graph):
        computed = [n for n, name in enumerate(node.inputs) if name not in constant]
        yield configuration_of(node.op, inputs, output, node.attrs, computed)
