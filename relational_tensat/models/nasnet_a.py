"""NasNet-A: the cells that architecture search found for images (Zoph et al., 2018).

A separable convolution is one depthwise and one pointwise convolution here (the paper: two of
each), without batch normalization; there is no classifier.
"""

from __future__ import annotations

from relational_tensat.models.builder import GraphBuilder
from relational_tensat.models.layers import avg_pool, concat_channels, conv, max_pool
from relational_tensat.tensor import Graph

STAGES, NORMAL_CELLS, CHANNELS = 3, 5, 128


def nasnet_a() -> Graph:
    """Build it: input [1, 3, 224, 224], output [1, 5120, 7, 7]."""
    graph = GraphBuilder("nasnet_a")
    with graph.scope("stem"):
        image = graph.input("image", 1, 3, 224, 224)
        x = conv(graph, image, 64, 7, stride=2, act="relu")
        x = max_pool(graph, x, 3, stride=2, pad="same")
    for stage in range(1, STAGES + 1):
        channels = CHANNELS * 2 ** (stage - 1)
        previous = current = x
        for cell in range(1, NORMAL_CELLS + 1):
            with graph.scope(f"stage{stage}.cell{cell}"):
                previous, current = current, _normal_cell(graph, previous, current, channels)
        with graph.scope(f"stage{stage}.reduction"):
            x = _reduction_cell(graph, previous, current, 2 * channels)
    return graph.build(x)


def _squeeze(graph: GraphBuilder, x: str, channels: int, name: str) -> str:
    return conv(graph, x, channels, 1, act="relu", name=name)


def _separable(graph: GraphBuilder, x: str, kernel: int, name: str, *, stride: int = 1) -> str:
    """Depthwise, then pointwise; as many channels as ``x`` has."""
    channels = graph.shape(x)[1]
    with graph.scope(name):
        y = conv(graph, x, channels, kernel, stride=stride, groups=channels, name="depthwise")
        return conv(graph, y, channels, 1, name="pointwise")


def _normal_cell(graph: GraphBuilder, previous: str, current: str, channels: int) -> str:
    cur = _squeeze(graph, current, channels, "squeeze_current")
    prev = _squeeze(graph, previous, channels, "squeeze_previous")

    def sep3(x: str, name: str) -> str:
        return _separable(graph, x, 3, name)

    def avg3(x: str) -> str:
        return avg_pool(graph, x, 3, stride=1, pad="same")

    def add(a: str, b: str) -> str:
        return graph.op("add", a, b)

    return concat_channels(
        graph,
        add(sep3(cur, "sep0"), cur),
        add(sep3(prev, "sep1"), sep3(cur, "sep2")),
        add(avg3(cur), prev),
        add(avg3(prev), avg3(prev)),
        add(sep3(prev, "sep3"), sep3(prev, "sep4")),
    )


def _reduction_cell(graph: GraphBuilder, previous: str, current: str, channels: int) -> str:
    cur = _squeeze(graph, current, channels, "squeeze_current")
    prev = _squeeze(graph, previous, channels, "squeeze_previous")

    def sep(x: str, kernel: int, name: str, stride: int = 2) -> str:
        return _separable(graph, x, kernel, name, stride=stride)

    def add(a: str, b: str) -> str:
        return graph.op("add", a, b)

    largest = max_pool(graph, cur, 3, stride=2, pad="same")
    out0 = add(sep(prev, 7, "sep0"), sep(cur, 5, "sep1"))
    out1 = add(largest, sep(prev, 7, "sep2"))
    out2 = add(avg_pool(graph, cur, 3, stride=2, pad="same"), sep(prev, 5, "sep3"))
    out3 = add(largest, sep(out0, 3, "sep4", stride=1))
    out4 = add(avg_pool(graph, out0, 3, stride=1, pad="same"), out1)
    return concat_channels(graph, out0, out1, out2, out3, out4)
