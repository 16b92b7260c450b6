"""Inception-v3 (Szegedy et al., 2016): every convolution has its relu fused; no norm, no bias.

Joins of four branches are binary trees of concatenations, as in the published experiments.
"""

from __future__ import annotations

from relational_tensat.models.builder import GraphBuilder
from relational_tensat.models.layers import avg_pool, concat_channels, max_pool
from relational_tensat.models.layers import conv as plain_conv
from relational_tensat.tensor import Graph

#: One convolution of a chain: channels and kernel.
Step = tuple[int, int | tuple[int, int]]


def inception_v3() -> Graph:
    """Build it: input [1, 3, 299, 299], output [1, 2048, 1, 1] (no classifier)."""
    graph = GraphBuilder("inception_v3")
    x = _stem(graph, graph.input("image", 1, 3, 299, 299))
    for index, pool_channels in enumerate((32, 64, 64), start=1):
        with graph.scope(f"a{index}"):
            x = _block_a(graph, x, pool_channels)
    with graph.scope("b"):
        x = _block_b(graph, x)
    for index, channels in enumerate((128, 160, 160, 192), start=1):
        with graph.scope(f"c{index}"):
            x = _block_c(graph, x, channels)
    with graph.scope("d"):
        x = _block_d(graph, x)
    for index in (1, 2):
        with graph.scope(f"e{index}"):
            x = _block_e(graph, x)
    return graph.build(avg_pool(graph, x, 8, stride=1, pad="valid"))


def _conv(
    graph: GraphBuilder,
    x: str,
    channels: int,
    kernel: int | tuple[int, int],
    name: str,
    *,
    stride: int = 1,
    pad: str = "same",
) -> str:
    return plain_conv(graph, x, channels, kernel, stride=stride, pad=pad, act="relu", name=name)


def _chain(graph: GraphBuilder, x: str, name: str, *steps: Step) -> str:
    """Convolutions one after the other, stride 1, padding "same"."""
    for index, (channels, kernel) in enumerate(steps, start=1):
        x = _conv(graph, x, channels, kernel, f"{name}.conv{index}")
    return x


def _halving(graph: GraphBuilder, x: str, channels: int, name: str) -> str:
    return _conv(graph, x, channels, 3, name, stride=2, pad="valid")


def _join(graph: GraphBuilder, b1: str, b2: str, b3: str, b4: str) -> str:
    return concat_channels(graph, concat_channels(graph, b1, b2), concat_channels(graph, b3, b4))


def _stem(graph: GraphBuilder, x: str) -> str:
    with graph.scope("stem"):
        x = _halving(graph, x, 32, "conv1")
        x = _conv(graph, x, 32, 3, "conv2", pad="valid")
        x = _conv(graph, x, 64, 3, "conv3")
        x = max_pool(graph, x, 3, stride=2, pad="valid")
        x = _conv(graph, x, 80, 1, "conv4", pad="valid")
        x = _conv(graph, x, 192, 3, "conv5", pad="valid")
        return max_pool(graph, x, 3, stride=2, pad="valid")


def _block_a(graph: GraphBuilder, x: str, pool_channels: int) -> str:
    """[1, C, 35, 35] to [1, 224 + pool_channels, 35, 35]."""
    b1 = _chain(graph, x, "branch1", (64, 1))
    b2 = _chain(graph, x, "branch2", (48, 1), (64, 5))
    b3 = _chain(graph, x, "branch3", (64, 1), (96, 3), (96, 3))
    pooled = avg_pool(graph, x, 3, stride=1, pad="same")
    b4 = _chain(graph, pooled, "branch4", (pool_channels, 1))
    return _join(graph, b1, b2, b3, b4)


def _block_b(graph: GraphBuilder, x: str) -> str:
    """[1, 288, 35, 35] to [1, 768, 17, 17]; the pool is an average, as published."""
    b1 = _halving(graph, x, 384, "branch1.conv1")
    b2 = _halving(graph, _chain(graph, x, "branch2", (64, 1), (96, 3)), 96, "branch2.conv3")
    b3 = avg_pool(graph, x, 3, stride=2, pad="valid")
    return concat_channels(graph, b3, concat_channels(graph, b1, b2))


def _block_c(graph: GraphBuilder, x: str, c: int) -> str:
    """[1, 768, 17, 17] to the same shape, ``c`` channels inside."""
    row, column = (1, 7), (7, 1)
    b1 = _chain(graph, x, "branch1", (192, 1))
    b2 = _chain(graph, x, "branch2", (c, 1), (c, row), (192, column))
    b3 = _chain(graph, x, "branch3", (c, 1), (c, column), (c, row), (c, column), (192, row))
    b4 = _chain(graph, avg_pool(graph, x, 3, stride=1, pad="same"), "branch4", (192, 1))
    return _join(graph, b1, b2, b3, b4)


def _block_d(graph: GraphBuilder, x: str) -> str:
    """[1, 768, 17, 17] to [1, 1280, 8, 8]."""
    b1 = _halving(graph, _chain(graph, x, "branch1", (192, 1)), 320, "branch1.conv2")
    inner = _chain(graph, x, "branch2", (192, 1), (192, (1, 7)), (192, (7, 1)))
    b2 = _halving(graph, inner, 192, "branch2.conv4")
    return concat_channels(graph, b1, b2, max_pool(graph, x, 3, stride=2, pad="valid"))


def _block_e(graph: GraphBuilder, x: str) -> str:
    """[1, C, 8, 8] to [1, 2048, 8, 8]; the pool is a maximum, as published."""

    def fork(y: str, name: str) -> str:
        row = _conv(graph, y, 384, (1, 3), f"{name}.row")
        column = _conv(graph, y, 384, (3, 1), f"{name}.column")
        return concat_channels(graph, row, column)

    b1 = _chain(graph, x, "branch1", (320, 1))
    b2 = fork(_chain(graph, x, "branch2", (384, 1)), "branch2")
    b3 = fork(_chain(graph, x, "branch3", (448, 1), (384, 3)), "branch3")
    b4 = _chain(graph, max_pool(graph, x, 3, stride=1, pad="same"), "branch4", (192, 1))
    return concat_channels(graph, b1, b2, b3, b4)
