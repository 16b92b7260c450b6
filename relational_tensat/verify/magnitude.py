"""How large random weights must be so that the values of a graph neither explode nor vanish.

A model without its normalizations (the linear transformers of the literature: attention without
softmax) multiplies activations with each other: its values grow as 3^depth in the exponent unless
weights compensate. One pass over the graph bounds the root mean square of every value, and gives
each weight that multiplies an activation the scale for which the product is about 1.
"""

from __future__ import annotations

import math

import numpy as np

from relational_tensat.tensor import Graph, Node
from relational_tensat.tensor.operators import Use, get_operator, operators
from relational_tensat.tensor.operators.activations import NO_ACTIVATION
from relational_tensat.tensor.operators.sampling import ADDED_SCALE

_LEAST, _MOST = 1e-12, 1e12


def weight_scales(graph: Graph) -> dict[str, float]:
    """Return the standard deviation for every float weight of the graph."""
    return _Pass(graph).run()


class _Pass:
    """Sizes (root mean squares) of the values seen so far, and the scales that were decided."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.scales: dict[str, float] = {}
        self.sizes: dict[str, float] = dict.fromkeys(graph.inputs, 1.0)
        #: The weight whose elements a value has; its scale is decided where it multiplies.
        self.source = {name: name for name in graph.weights}

    def run(self) -> dict[str, float]:
        for node in self.graph.nodes:
            moves = node.inputs and get_operator(node.op).use_of(0) is Use.MOVED
            if moves and node.inputs[0] in self.source:
                self.source |= dict.fromkeys(node.outputs, self.source[node.inputs[0]])
                continue
            size = min(max(self._size(node), _LEAST), _MOST)
            self.sizes |= dict.fromkeys(node.outputs, size)
        return {name: self.scales.get(name, 1.0) for name in self.graph.weights}

    def _size(self, node: Node) -> float:
        operator = get_operator(node.op)
        types = tuple(self.graph.types[name] for name in node.inputs)
        terms = operator.summed_terms(types)
        if terms is not None:
            return self._product(node, terms)
        sizes = [self._operand(node, k) for k in range(len(node.inputs))]
        return operator.growth(sizes, types, node.attrs)

    def _product(self, node: Node, terms: int) -> float:
        """Return the size of a sum of so many products, deciding the scale of a weight in it."""
        open_names = [name for name in node.inputs[:2] if self._is_undecided(name)]
        if len(open_names) == 1:
            (partner,) = (k for k in (0, 1) if node.inputs[k] != open_names[0])
            self.scales[self.source[open_names[0]]] = 1.0 / (
                self._operand(node, partner) * math.sqrt(terms)
            )
        for name in open_names:  # of two weights that are multiplied, both the same
            self.scales.setdefault(self.source[name], terms**-0.25)
        a, b = self._operand(node, 0), self._operand(node, 1)
        # A weight is independent of what it multiplies; activations may all point the same way.
        independent = any(name in self.source for name in node.inputs[:2])
        size = a * b * (math.sqrt(terms) if independent else terms)
        size += sum(self._operand(node, added) for added in range(2, len(node.inputs)))
        # What only kernels have, such as an approximation of GELU, is at most as large as its operand.
        activation = operators().get(str(node.attrs.get("act", NO_ACTIVATION)))
        return size if activation is None else activation.growth([size], (), {})

    def _is_undecided(self, name: str) -> bool:
        return name in self.source and self.source[name] not in self.scales

    def _operand(self, node: Node, operand: int) -> float:
        name = node.inputs[operand]
        if name not in self.source:
            return self.sizes[name]
        weight = self.source[name]
        if weight not in self.scales:
            data = self.graph.weights[weight].data
            if data is not None and data.size == 1 and self.graph.weights[weight].type.is_float:
                self.scales[weight] = max(abs(float(np.asarray(data).reshape(-1)[0])), _LEAST)
            else:
                added = get_operator(node.op).use_of(operand) is Use.ADDED
                self.scales[weight] = ADDED_SCALE if added else 1.0
        return self.scales[weight]
