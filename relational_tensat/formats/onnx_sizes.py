"""Nodes of an ONNX graph that compute sizes: they depend on shapes and constants alone."""

from __future__ import annotations

import onnx


def size_nodes(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """Return the nodes that are Shape or compute of what such nodes gave, and constants, alone.

    At given sizes they are constants. Those of subgraphs are left out.
    """
    constants = {"", *(weight.name for weight in graph.initializer)}
    sizes: set[str] = set()
    found = []
    for node in graph.node:
        read = sizes.intersection(node.input)
        if node.op_type == "Shape" or (read and read.union(constants).issuperset(node.input)):
            sizes.update(node.output)
            found.append(node)
    return found
