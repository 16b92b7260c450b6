"""How large random weights must be so that the values of a graph neither explode nor vanish.

A model without its normalizations (the linear transformers of the literature: attention without
softmax) multiplies activations with each other: its values grow as 3^depth in the exponent unless
weights compensate. One pass over the graph bounds the root mean square of every value, and gives
each weight that multiplies an activation the scale for which the product is about 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from relational_tensat.tensor import Graph, Node, TensorType, tensors_of
from relational_tensat.tensor.operators.attributes import float_of, ints_of

#: Scale of weights that are added: small, so that the inputs and not these decide the outputs.
ADDED_SCALE = 0.1

#: (operator, operand) pairs that only move the elements of the operand.
MOVES = frozenset({
    ("reshape", 0), ("transpose", 0), ("identity", 0), ("dropout", 0), ("cast", 0), ("slice", 0),
    ("split", 0), ("gather", 0), ("pad", 0), ("enlarge", 0), ("merge", 0),
})  # fmt: skip
_ADDED = {
    ("add", 0), ("add", 1), ("sub", 0), ("sub", 1), ("matmul", 2), ("conv", 2), ("layer_norm", 2),
    ("batch_norm", 2), ("batch_norm", 3),
}  # fmt: skip
_LEAST, _MOST = 1e-12, 1e12
#: Half of the elements are positive.
_RELU = math.sqrt(0.5)

#: Root mean squares of results from those of the operands; for the others the largest operand's.
_RULES: dict[str, Callable[[list[float]], float]] = {
    "add": sum,
    "sub": sum,
    "mul": math.prod,
    "div": lambda sizes: sizes[0] / sizes[1],
    "pow": lambda sizes: sizes[0] ** 2,
    "relu": lambda sizes: _RELU * sizes[0],
    "gelu": lambda sizes: _RELU * sizes[0],
    "tanh": lambda sizes: min(sizes[0], 1.0),
    "erf": lambda sizes: min(sizes[0], 1.0),
    "sigmoid": lambda sizes: 1.0,
    "softmax": lambda sizes: 1.0,
    "layer_norm": lambda sizes: 1.0,
    "rms_norm": lambda sizes: 1.0,
    "batch_norm": lambda sizes: sizes[0] + 2 * ADDED_SCALE,
    "exp": lambda sizes: math.exp(min(sizes[0], 20.0)),
    "log": lambda sizes: 1.0,
    "sqrt": lambda sizes: math.sqrt(sizes[0]),
    "reciprocal": lambda sizes: 1.0 / sizes[0],
}


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
            if (node.op, 0) in MOVES and node.inputs[0] in self.source:
                self.source |= dict.fromkeys(node.outputs, self.source[node.inputs[0]])
                continue
            size = min(max(self._size(node), _LEAST), _MOST)
            self.sizes |= dict.fromkeys(node.outputs, size)
        return {name: self.scales.get(name, 1.0) for name in self.graph.weights}

    def _size(self, node: Node) -> float:
        if node.op in ("matmul", "conv"):
            return self._product(node)
        sizes = [self._operand(node, k) for k in range(len(node.inputs))]
        if node.op == "fill":
            return abs(float_of(node.attrs, "value"))
        if node.op == "smul":
            return abs(float_of(node.attrs, "value")) * sizes[0]
        if node.op == "reduce_sum":
            shape = self._type(node.inputs[0]).shape
            return sizes[0] * math.prod(shape[axis] for axis in ints_of(node.attrs, "axes"))
        rule = _RULES.get(node.op)
        return rule(sizes) if rule else max(sizes, default=1.0)

    def _product(self, node: Node) -> float:
        """Return the size of a sum of products, deciding the scale of a weight in it."""
        shape = self._type(node.inputs[1]).shape
        terms = math.prod(shape[1:]) if node.op == "conv" else shape[-2]
        undecided = [name for name in node.inputs[:2] if self._is_undecided(name)]
        if len(undecided) == 1:
            (other,) = (k for k in (0, 1) if node.inputs[k] != undecided[0])
            self.scales[self.source[undecided[0]]] = 1.0 / (
                self._operand(node, other) * math.sqrt(terms)
            )
        for name in undecided:  # of two weights that are multiplied, both the same
            self.scales.setdefault(self.source[name], terms**-0.25)
        a, b = self._operand(node, 0), self._operand(node, 1)
        # A weight is independent of what it multiplies; activations may all point the same way.
        independent = any(name in self.source for name in node.inputs[:2])
        size = a * b * (math.sqrt(terms) if independent else terms)
        if len(node.inputs) == 3:
            size += self._operand(node, 2)
        act = str(node.attrs["act"])
        return _RULES[act]([size]) if act in _RULES else size

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
                added = (node.op, operand) in _ADDED
                self.scales[weight] = ADDED_SCALE if added else 1.0
        return self.scales[weight]

    def _type(self, name: str) -> TensorType:
        return tensors_of(self.graph.types[name])[0]
