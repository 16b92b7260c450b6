"""What onnxruntime makes of quantized graphs before it makes kernels on integers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph

#: How much higher integers of uint8 are than those of int8 that stand for the same.
_BETWEEN = 128
#: Operands of what quantizes: elements, scale, zero point.
_WITH_ZERO_POINT = 3


def as_unsigned(graph: Graph) -> Graph:
    """Return a graph with the integers that onnxruntime brings from int8 to uint8 before it makes kernels.

    It does so where one operator alone reads what is dequantized, as it dequantizes for each operator anew.
    """
    readers = Counter([*graph.outputs, *(name for node in graph.nodes for name in node.inputs)])
    quantized = {node.outputs[0]: node for node in graph.nodes if node.op == "quantize"}
    pairs = {
        node.inputs[0]: node
        for node in graph.nodes
        if node.op == "dequantize"
        and node.inputs[0] in quantized
        and readers[node.inputs[0]] == readers[node.outputs[0]] == 1
        and _has_one_of_int8(graph, quantized[node.inputs[0]])
    }
    if not pairs:
        return graph
    weights, nodes = dict(graph.weights), []
    for node in graph.nodes:
        value = node.outputs[0] if node.op == "quantize" else (*node.inputs, "")[0]
        if value not in pairs or node not in (quantized[value], pairs[value]):
            nodes.append(node)
            continue
        zero = node.inputs[2]
        name = f"{zero}/unsigned"
        data = np.asarray(weights[zero].data).astype(np.int16) + _BETWEEN
        weights[name] = Weight(TensorType("uint8", weights[zero].type.shape), data.astype(np.uint8))
        attrs = {**node.attrs, "dtype": "uint8"} if node.op == "quantize" else node.attrs
        nodes.append(replace(node, inputs=(*node.inputs[:2], name), attrs=attrs))
    return build_graph(graph.name, graph.inputs, weights, nodes, graph.outputs)


def dequantized_for_each(graph: Graph) -> Graph:
    """Return a graph in which integers are dequantized for each operator anew, as onnxruntime does it."""
    dequantized = {node.outputs[0]: node for node in graph.nodes if node.op == "dequantize"}
    nodes: list[Node] = []
    taken: set[str] = set()
    for node in graph.nodes:
        inputs = list(node.inputs)
        for index, name in enumerate(inputs):
            if name in taken:
                inputs[index] = f"{name}/for/{node.outputs[0]}/{index}"
                nodes.append(replace(dequantized[name], outputs=(inputs[index],)))
            elif name in dequantized:
                taken.add(name)
        nodes.append(replace(node, inputs=tuple(inputs)))
    if len(nodes) == len(graph.nodes):
        return graph
    return build_graph(graph.name, graph.inputs, graph.weights, nodes, graph.outputs)


def _has_one_of_int8(graph: Graph, node: Node) -> bool:
    zero = graph.weights.get(node.inputs[2]) if len(node.inputs) == _WITH_ZERO_POINT else None
    return (
        zero is not None
        and zero.type.dtype == "int8"
        and zero.type.size == 1
        and zero.data is not None
    )
