"""VGG-19 (Simonyan and Zisserman, 2015), biases left out; each relu is a node of its own."""

from __future__ import annotations

from relational_tensat.models.builder import GraphBuilder
from relational_tensat.models.layers import conv, max_pool, relu
from relational_tensat.tensor import Graph

#: Convolutions and channels of each group; a pool halves the image after each.
GROUPS = ((2, 64), (2, 128), (4, 256), (4, 512), (4, 512))
#: Width of the hidden layers of the classifier, and the number of classes.
HIDDEN, CLASSES = 4096, 1000


def vgg19() -> Graph:
    """Build it: input [1, 3, 224, 224], output [1, 1000]."""
    graph = GraphBuilder("vgg19")
    x = graph.input("image", 1, 3, 224, 224)
    for group, (convs, channels) in enumerate(GROUPS, start=1):
        with graph.scope(f"group{group}"):
            for index in range(1, convs + 1):
                x = relu(graph, conv(graph, x, channels, 3, name=f"conv{index}"))
            x = max_pool(graph, x, 2, stride=2, pad="valid")
    with graph.scope("classifier"):
        x = graph.op("reshape", x, shape=(1, 512 * 7 * 7))
        x = _dense(graph, x, HIDDEN, "dense1")
        x = _dropped(graph, x)
        x = _dense(graph, x, HIDDEN, "dense2")
        x = _dropped(graph, x)
        x = _dense(graph, x, CLASSES, "dense3")
    return graph.build(x)


def _dense(graph: GraphBuilder, x: str, width: int, name: str) -> str:
    """Multiply [1, K] by the transpose of a weight [width, K], the layout of the ONNX file."""
    with graph.scope(name):
        weight = graph.weight("weight", width, graph.shape(x)[-1])
        return graph.op("matmul", x, graph.op("transpose", weight, perm=(1, 0)))


def _dropped(graph: GraphBuilder, x: str) -> str:
    """Rectify, drop out, and reshape to the shape that it has, as the ONNX file does."""
    x = graph.op("dropout", relu(graph, x))
    return graph.op("reshape", x, shape=(1, HIDDEN))
