"""ResNet-50 and ResNeXt-50, convolutions without bias and without batch normalization."""

from __future__ import annotations

from relational_tensat.models.builder import GraphBuilder
from relational_tensat.models.layers import conv, max_pool, relu
from relational_tensat.tensor import Graph


def resnet50() -> Graph:
    """Build it from the first stage on: input [1, 64, 56, 56], output [1, 2048, 7, 7]."""
    graph = GraphBuilder("resnet50")
    x = graph.input("image", 1, 64, 56, 56)
    stages = ((3, 64), (4, 128), (6, 256), (3, 512))
    return graph.build(_stages(graph, x, stages, groups=1, expansion=4))


def resnext50() -> Graph:
    """Build it with 32 groups and its stem: input [1, 3, 224, 224], output [1, 2048, 7, 7]."""
    graph = GraphBuilder("resnext50")
    x = graph.input("image", 1, 3, 224, 224)
    with graph.scope("stem"):
        x = conv(graph, x, 64, 7, stride=2, act="relu")
        x = max_pool(graph, x, 3, stride=2, pad="same")
    stages = ((3, 128), (4, 256), (6, 512), (3, 1024))
    return graph.build(_stages(graph, x, stages, groups=32, expansion=2))


def _stages(
    graph: GraphBuilder,
    x: str,
    stages: tuple[tuple[int, int], ...],
    *,
    groups: int,
    expansion: int,
) -> str:
    for stage, (blocks, width) in enumerate(stages, start=1):
        for block in range(1, blocks + 1):
            stride = 2 if stage > 1 and block == 1 else 1
            with graph.scope(f"stage{stage}.block{block}"):
                x = _block(graph, x, width, stride=stride, groups=groups, expansion=expansion)
    return x


def _block(
    graph: GraphBuilder, x: str, width: int, *, stride: int, groups: int, expansion: int
) -> str:
    """A bottleneck; the shortcut's own convolution has its relu fused, as published."""
    channels = expansion * width
    y = conv(graph, x, width, 1, act="relu", name="reduce")
    y = conv(graph, y, width, 3, stride=stride, groups=groups, act="relu", name="conv")
    y = conv(graph, y, channels, 1, name="expand")
    if stride > 1 or graph.shape(x)[1] != channels:
        x = conv(graph, x, channels, 1, stride=stride, act="relu", name="shortcut")
    return relu(graph, graph.op("add", x, y))
