"""How far apart neighbouring values of a quantized output are.

A kernel on integers and the operators on floats that it stands for round sums differently in the last
digit. Where a sum lies between two integers, the results are these two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from relational_tensat.tensor import Array, Graph, Node
from relational_tensat.verify.comparison import TINY
from relational_tensat.verify.evaluate import Weights, weight_of
from relational_tensat.verify.outputs import output_names

#: What leaves values as they are, or chooses among them.
_MOVES = frozenset({"identity", "reshape", "transpose", "slice", "relu", "max_pool"})


def relative_steps(graph: Graph, weights: Weights, outputs: Sequence[Array]) -> list[float]:
    """Return, per output, its step relative to its largest element; 0 where it is not quantized.

    Args:
        weights: the scales among them.
        outputs: the graph's.
    """
    producers = {name: node for node in graph.nodes for name in node.outputs}
    names = output_names(graph)
    return [
        _step(graph, producers, weights, name) / max(_largest(array), TINY)
        for name, array in zip(names, outputs, strict=True)
    ]


def _step(graph: Graph, producers: Mapping[str, Node], weights: Weights, name: str) -> float:
    node = producers.get(name)
    while node is not None and node.op in _MOVES:
        node = producers.get(node.inputs[0])
    if node is None or node.op != "dequantize" or node.inputs[1] not in graph.weights:
        return 0.0
    scale = node.inputs[1]
    return _largest(np.asarray(weight_of(weights, scale, graph.weights[scale].type)))


def _largest(array: Array) -> float:
    if array.dtype.kind != "f" or not array.size:
        return 0.0
    numbers = np.abs(array.astype(np.float64))
    return float(np.max(numbers, initial=0.0, where=np.isfinite(numbers)))
