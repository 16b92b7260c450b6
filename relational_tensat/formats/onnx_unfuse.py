"""Kernels that do several of a file's nodes at once, taken apart into these again.

A rule that makes an activation or a bias part of a product changes what a kernel does, and nothing in
the file: ONNX has no such products. Neither is a number that rules can see another constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from relational_tensat.formats.onnx_origin import Origin
from relational_tensat.tensor import AttrValue, Graph, Node, TensorType, Weight, build_graph
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.operators.activations import NO_ACTIVATION


def unfuse(graph: Graph, origin: Origin) -> Graph:
    """Return the graph with the nodes and constants of the file where kernels are these together."""
    return _Unfusing(graph, origin).unfused()


class _Unfusing:
    def __init__(self, graph: Graph, origin: Origin) -> None:
        self._graph = graph
        self._origin = origin
        self._names = {*graph.types, *origin.graph.types, *origin.known}
        self._defined = set(graph.types)
        self._numbers = _numbers(origin.graph.weights)
        #: The file's weights that are used in place of numbers.
        self._weights: dict[str, Weight] = {}
        self._renamed: dict[str, str] = {}

    def unfused(self) -> Graph:
        graph = self._graph
        nodes = [part for node in graph.nodes for part in self._parts(node)]
        if len(nodes) == len(graph.nodes) and not self._weights:
            return graph
        nodes = [
            replace(node, inputs=tuple(self._renamed.get(name, name) for name in node.inputs))
            for node in nodes
        ]
        weights = {**graph.weights, **self._weights}
        return build_graph(
            graph.name,
            graph.inputs,
            weights,
            nodes,
            graph.outputs,
            graph.metadata,
            origin=graph.origin,
        )

    def _parts(self, node: Node) -> Iterator[Node]:
        """Yield the nodes that a node is in the file; itself unless they are there."""
        if node.op == "fill" and self._is_weight(node):
            return
        act = str(node.attrs.get("act", NO_ACTIVATION))
        original = self._origin.producers.get(node.outputs[0])
        if act == NO_ACTIVATION:
            yield from self._product_and_bias(node)
            return
        attrs: dict[str, AttrValue] = {**node.attrs, "act": NO_ACTIVATION}
        name = ""
        if original is not None and original.op == act:
            name = original.inputs[0]
        name = self._name(name, node, attrs)
        yield from self._product_and_bias(replace(node, outputs=(name,), attrs=attrs, name=""))
        yield Node(act, (name,), node.outputs, {}, node.name)

    def _product_and_bias(self, node: Node) -> Iterator[Node]:
        """Yield a node, or the product and the sum that it is in the file."""
        kinds = tuple(self._graph.types[name] for name in node.inputs)
        total = self._origin.producers.get(node.outputs[0])
        is_apart = get_operator(node.op).adds_bias_apart(kinds)
        if not is_apart or total is None or total.op != "add":
            yield node
            return
        product, bias = node.inputs[:2], node.inputs[2]
        for index, operand in enumerate(total.inputs):
            original = self._origin.producers.get(operand)
            if original is not None and original.op == node.op and len(original.inputs) == 2:
                name = self._name(operand, node, node.attrs)
                yield Node(node.op, product, (name,), node.attrs)
                yield replace(
                    total, inputs=(name, bias) if index == 0 else (bias, name), name=node.name
                )
                return
        yield node

    def _name(self, name: str, node: Node, attrs: Mapping[str, AttrValue]) -> str:
        """Return the file's name of a value between the parts, if it may be that one, else another."""
        original = self._origin.producers.get(name)
        is_like = original is not None and (original.op, original.attrs) == (node.op, attrs)
        is_sum = original is not None and original.op == "add"
        if name not in self._defined and (is_like or is_sum):
            self._defined.add(name)
            return name
        base = number = f"{node.outputs[0]}/{node.op}"
        count = 0
        while number in self._names:
            count += 1
            number = f"{base}_{count}"
        self._names.add(number)
        return number

    def _is_weight(self, node: Node) -> bool:
        """Whether a constant is a weight of the file, which is then used in its place."""
        kind, value = self._graph.types[node.outputs[0]], repr(node.attrs["value"])
        name = self._numbers.get((kind, value)) if isinstance(kind, TensorType) else None
        if name is None or node.outputs[0] in self._graph.outputs or self._is_other(name):
            return False
        self._renamed[node.outputs[0]] = name
        if name not in self._graph.weights:
            self._weights[name] = self._origin.graph.weights[name]
        return True

    def _is_other(self, name: str) -> bool:
        """Whether the graph has that name for something else."""
        return name in self._graph.types and name not in self._graph.weights


def _numbers(weights: Mapping[str, Weight]) -> dict[tuple[TensorType, str], str]:
    """Return the weights of a single number by their type and what Python prints for the number.

    That tells -0.0 from 0.0.
    """
    names: dict[tuple[TensorType, str], str] = {}
    for name, weight in weights.items():
        if weight.data is not None and weight.type.size == 1 and weight.type.dtype != "bool":
            number = np.asarray(weight.data).reshape(-1)[0].item()
            if float(number) == number:
                names.setdefault((weight.type, repr(float(number))), name)
    return names
