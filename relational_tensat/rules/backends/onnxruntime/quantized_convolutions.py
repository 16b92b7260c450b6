"""Convolutions on integers that onnxruntime makes at any cost, as part of its changes to quantized graphs.

Of few channels, a convolution on floats between Dequantize and Quantize is quicker: rows of windows are
copied (3 channels, 128x128 places, 3x3, 32 filters: 85 us beside 66; AMD EPYC, 2026-11-28).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from relational_tensat.rules.backends.onnxruntime.integer_kernels import (
    FromChannelsLast,
    QuantizedConv,
    ToChannelsLast,
)
from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph
from relational_tensat.tensor.operators.base import tensor
from relational_tensat.tensor.operators.traits import NO_ACTIVATION

#: How much higher integers of uint8 are than those of int8 that stand for the same.
_BETWEEN = 128
#: Operands of what quantizes: elements, scale, zero point.
_WITH_ZERO_POINT = 3


def as_unsigned(graph: Graph) -> Graph:
    """Return a graph with the integers that onnxruntime brings from int8 to uint8 before it makes kernels.

    It does so where one operator alone reads what is dequantized, as it dequantizes for each one.
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
    """Return a graph in which integers are dequantized for each operator again, as onnxruntime does it."""
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


#: Operands of what dequantizes, and of what quantizes.
_OPERANDS = 3
#: Axes of images.
_RANK = 4


def with_quantized_convolutions(graph: Graph) -> Graph:
    """Return a graph with the kernel in place of each convolution on floats that the rules say is one."""
    producers = {name: node for node in graph.nodes for name in node.outputs}
    readers = Counter([*graph.outputs, *(name for node in graph.nodes for name in node.inputs)])
    fused = {
        node.outputs[0]: conv
        for node in graph.nodes
        if node.op == "quantize"
        and (conv := producers.get(node.inputs[0])) is not None
        and readers[node.inputs[0]] == 1
        and _is_fused(graph, node, conv, producers)
    }
    if not fused:
        return graph
    nodes = []
    for node in graph.nodes:
        if node.outputs[0] in fused:
            nodes += _kernels(node, fused[node.outputs[0]], producers)
        else:
            nodes.append(node)
    return _without_ways_there_and_back(graph, nodes)


def _is_fused(graph: Graph, last: Node, conv: Node, producers: Mapping[str, Node]) -> bool:
    """Whether the rule ``ort-quantized-convolution`` is about a convolution that is quantized."""
    if conv.op != "conv" or conv.attrs["act"] != NO_ACTIVATION:
        return False
    operands = [producers.get(name) for name in conv.inputs]
    if any(
        each is None or each.op != "dequantize" or len(each.inputs) != _OPERANDS
        for each in operands
    ):
        return False
    image, filters, *biases = [each for each in operands if each is not None]
    x, scale = (tensor(graph.types[name], image.op) for name in image.inputs[:2])
    w, result = (tensor(graph.types[name], conv.op) for name in (filters.inputs[0], *last.outputs))
    return (
        all(each.attrs["stored"] and each.attrs["axis"] == 0 for each in (filters, *biases))
        and len(last.inputs) == _OPERANDS
        and (x.dtype, result.dtype, scale.dtype) == ("uint8", "uint8", "float32")
        and w.dtype != "int32"
        and x.rank == _RANK
    )


def _kernels(last: Node, conv: Node, producers: Mapping[str, Node]) -> list[Node]:
    """Return the kernel with what brings its image to channels that come last, and its result back."""
    there, done = f"{conv.outputs[0]}/there", f"{conv.outputs[0]}/done"
    (image, *others) = [producers[name].inputs for name in conv.inputs]
    operands = [there, *image[1:], *(name for each in others for name in each), *last.inputs[1:]]
    window = {name: conv.attrs[name] for name in ("stride", "pad", "dilation")}
    return [
        Node(ToChannelsLast.name, image[:1], (there,)),
        Node(QuantizedConv.name, tuple(operands), (done,), window),
        Node(FromChannelsLast.name, (done,), last.outputs),
    ]


def _without_ways_there_and_back(graph: Graph, nodes: list[Node]) -> Graph:
    """Return the graph of nodes less what nobody reads and images that are brought back and there again."""
    sources = {
        node.outputs[0]: node.inputs[0] for node in nodes if node.op == FromChannelsLast.name
    }
    same = {
        node.outputs[0]: sources[node.inputs[0]]
        for node in nodes
        if node.op == ToChannelsLast.name and node.inputs[0] in sources
    }
    kept: list[Node] = []
    needed = set(graph.outputs)
    for node in reversed(nodes):
        if node.outputs[0] in same or needed.isdisjoint(node.outputs):
            continue
        inputs = tuple(same.get(name, name) for name in node.inputs)
        needed.update(inputs)
        kept.append(replace(node, inputs=inputs))
    return build_graph(graph.name, graph.inputs, graph.weights, kept[::-1], graph.outputs)
