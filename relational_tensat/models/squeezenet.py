"""SqueezeNet 1.1 (Iandola et al., 2016), biases left out; each relu is a node of its own."""

from __future__ import annotations

from relational_tensat.models.builder import GraphBuilder
from relational_tensat.models.layers import avg_pool, concat_channels, conv, max_pool, relu
from relational_tensat.tensor import Graph

#: Channels of the squeeze and of each expand convolution; "pool" halves the image.
FIRES: tuple[tuple[int, int] | str, ...] = (
    (16, 64), (16, 64), "pool", (32, 128), (32, 128), "pool",
    (48, 192), (48, 192), (64, 256), (64, 256),
)  # fmt: skip
CLASSES = 1000


def squeezenet() -> Graph:
    """Build it: input [1, 3, 224, 224], output [1, 1000]."""
    graph = GraphBuilder("squeezenet")
    image = graph.input("image", 1, 3, 224, 224)
    with graph.scope("stem"):
        x = relu(graph, conv(graph, image, 64, 3, stride=2, pad="valid"))
        x = max_pool(graph, x, 3, stride=2, pad="valid")
    for index, fire in enumerate(FIRES, start=1):
        with graph.scope(f"block{index}"):
            if isinstance(fire, str):
                x = max_pool(graph, x, 3, stride=2, pad="valid")
            else:
                x = _fire(graph, x, *fire)
    with graph.scope("classifier"):
        x = relu(graph, conv(graph, graph.op("dropout", x), CLASSES, 1))
        x = avg_pool(graph, x, 13, stride=13, pad="valid")
        x = graph.op("reshape", x, shape=(1, CLASSES))
    return graph.build(x)


def _fire(graph: GraphBuilder, x: str, squeeze: int, expand: int) -> str:
    """[1, C, H, W] to [1, 2 expand, H, W]."""
    x = relu(graph, conv(graph, x, squeeze, 1, name="squeeze"))
    small = relu(graph, conv(graph, x, expand, 1, name="expand1"))
    large = relu(graph, conv(graph, x, expand, 3, name="expand3"))
    return concat_channels(graph, small, large)
