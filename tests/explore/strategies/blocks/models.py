"""Small graphs with blocks that recur."""

from __future__ import annotations

from collections.abc import Sequence

from relational_tensat.models import GraphBuilder
from relational_tensat.tensor import Graph

#: Steps that a random block is made of; each takes and gives a tensor [4, 4].
STEPS = ("relu", "identity", "swap", "product", "products", "residual", "shift", "tied")


def chain(blocks: Sequence[Sequence[str]], tail: Sequence[str] = ()) -> Graph:
    """Return blocks one after the other, then a tail; each is a list of ``STEPS``."""
    graph = GraphBuilder("chain")
    x = graph.input("x", 4, 4)
    mask = graph.input("mask", 4, 4)
    graph.weight("shared", 4, 4)
    for index, steps in enumerate([*blocks, tail]):
        with graph.scope(f"block{index}"):
            for number, step in enumerate(steps):
                with graph.scope(f"step{number}"):
                    x = _step(graph, x, mask, step)
    return graph.build(x)


def _step(graph: GraphBuilder, x: str, mask: str, step: str) -> str:
    if step in ("relu", "identity"):
        return graph.op(step, x)
    if step == "product":
        return graph.op("matmul", x, graph.weight("w", 4, 4))
    if step == "products":
        parts = [graph.op("matmul", x, graph.weight(f"w{i}", 4, 4)) for i in range(2)]
        return graph.op("add", *parts)
    if step == "residual":
        inner = graph.op("relu", graph.op("matmul", x, graph.weight("w", 4, 4)))
        return graph.op("add", x, inner)
    if step == "shift":
        number = graph.op("fill", value=0.5, dtype="float32", shape=())
        return graph.op("add", graph.op("mul", x, number), mask)
    if step == "tied":
        return graph.op("matmul", x, "shared")
    return graph.op("sub", graph.op("relu", x), x)  # swap


def residual_net(blocks: int, channels: int = 8) -> Graph:
    """Return a convolutional stem, then residual blocks of two convolutions."""
    graph = GraphBuilder("residual_net")
    x = graph.input("image", 1, 3, 8, 8)

    def conv(x: str, name: str, kernel: int) -> str:
        with graph.scope(name):
            weight = graph.weight("w", channels, graph.shape(x)[1], kernel, kernel)
            return graph.op("conv", x, weight, stride=(1, 1), pad="same")

    x = graph.op("relu", conv(x, "stem", 3))
    for block in range(blocks):
        with graph.scope(f"block{block}"):
            inner = graph.op("relu", conv(x, "first", 3))
            branch = graph.op("relu", conv(x, "branch", 1))
            x = graph.op("relu", graph.op("add", conv(inner, "second", 3), branch))
    return graph.build(x)
