"""MobileNet-v2 (Sandler et al., 2018), with batch normalization, and relu for its relu6."""

from __future__ import annotations

from relational_tensat.base.records import record
from relational_tensat.models.builder import GraphBuilder
from relational_tensat.models.layers import avg_pool, batch_norm, conv, relu
from relational_tensat.tensor import Graph


@record
class Block:
    """An inverted residual block: channels inside, channels out, and the stride in between."""

    inner: int
    channels: int
    stride: int = 1
    residual: bool = False


def _repeat(inner: int, channels: int, count: int) -> tuple[Block, ...]:
    return (Block(inner, channels, residual=True),) * count


BLOCKS = (
    Block(32, 16),
    Block(96, 24, stride=2), *_repeat(144, 24, 1),
    Block(144, 32, stride=2), *_repeat(192, 32, 2),
    Block(192, 64), *_repeat(384, 64, 3),
    Block(384, 96, stride=2), *_repeat(576, 96, 2),
    Block(576, 160, stride=2), *_repeat(960, 160, 2),
    Block(960, 320),
)  # fmt: skip
CLASSES = 1000


def mobilenet_v2() -> Graph:
    """Build it: input [1, 3, 224, 224], output [1, 1000]."""
    graph = GraphBuilder("mobilenet_v2")
    x = graph.input("image", 1, 3, 224, 224)
    x = relu(graph, _conv_norm(graph, x, 32, 3, "stem", stride=2))
    for index, block in enumerate(BLOCKS, start=1):
        with graph.scope(f"block{index}"):
            x = _inverted_residual(graph, x, block)
    x = relu(graph, _conv_norm(graph, x, 1280, 1, "head"))
    with graph.scope("classifier"):
        x = avg_pool(graph, x, 7, stride=1, pad="valid")
        x = graph.op("reshape", conv(graph, x, CLASSES, 1), shape=(1, CLASSES))
    return graph.build(x)


def _inverted_residual(graph: GraphBuilder, x: str, block: Block) -> str:
    y = relu(graph, _conv_norm(graph, x, block.inner, 1, "expand"))
    y = _conv_norm(graph, y, block.inner, 3, "depthwise", stride=block.stride, groups=block.inner)
    y = _conv_norm(graph, relu(graph, y), block.channels, 1, "project")
    return graph.op("add", y, x) if block.residual else y


def _conv_norm(
    graph: GraphBuilder,
    x: str,
    channels: int,
    kernel: int,
    name: str,
    *,
    stride: int = 1,
    groups: int = 1,
) -> str:
    with graph.scope(name):
        return batch_norm(graph, conv(graph, x, channels, kernel, stride=stride, groups=groups))
