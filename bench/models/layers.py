"""The layers that the models are made of: an operator together with the weights that it takes."""

from __future__ import annotations

from bench.models.builder import GraphBuilder

#: The epsilon of every batch normalization, ONNX's default.
BATCH_NORM_EPSILON = 1e-5


def conv(
    graph: GraphBuilder,
    x: str,
    channels: int,
    kernel: int | tuple[int, int],
    *,
    stride: int = 1,
    pad: str = "same",
    groups: int = 1,
    act: str = "none",
    name: str = "conv",
) -> str:
    """Convolve [N, C, H, W] to [N, channels, H', W'] with a weight of its own, without bias."""
    rows, columns = (kernel, kernel) if isinstance(kernel, int) else kernel
    with graph.scope(name):
        weight = graph.weight("weight", channels, graph.shape(x)[1] // groups, rows, columns)
        return graph.op("conv", x, weight, stride=(stride, stride), pad=pad, act=act)


def max_pool(graph: GraphBuilder, x: str, kernel: int, *, stride: int, pad: str) -> str:
    """Take the maximum over windows of [N, C, H, W]."""
    return graph.op("max_pool", x, kernel=(kernel, kernel), stride=(stride, stride), pad=pad)


def avg_pool(graph: GraphBuilder, x: str, kernel: int, *, stride: int, pad: str) -> str:
    """Take the mean over windows of [N, C, H, W]; padding does not count."""
    return graph.op("avg_pool", x, kernel=(kernel, kernel), stride=(stride, stride), pad=pad)


def linear(graph: GraphBuilder, x: str, width: int, name: str) -> str:
    """Multiply [..., K] by a weight [K, width] of its own, without bias."""
    with graph.scope(name):
        return graph.op("matmul", x, graph.weight("weight", graph.shape(x)[-1], width))


def batch_norm(graph: GraphBuilder, x: str, name: str = "norm") -> str:
    """Normalize [N, C, H, W] with four weights [C]."""
    channels = graph.shape(x)[1]
    with graph.scope(name):
        weights = [graph.weight(part, channels) for part in ("scale", "bias", "mean", "var")]
        return graph.op("batch_norm", x, *weights, epsilon=BATCH_NORM_EPSILON)


def relu(graph: GraphBuilder, x: str) -> str:
    """Rectify a tensor of any shape."""
    return graph.op("relu", x)


def concat_channels(graph: GraphBuilder, *parts: str) -> str:
    """Join [N, C_i, H, W] to [N, sum C_i, H, W]."""
    return graph.op("concat", *parts, axis=1)


def attention(graph: GraphBuilder, x: str, heads: int, *, transpose_key: bool) -> str:
    """Attend without softmax: (q k) v per head, joined again, [S, D] to [S, D].

    Args:
        transpose_key: whether the scores are q kᵀ. Where not, k has the layout of q, [heads, S, D /
            heads], which fits only because S = D / heads; some published models are built so.
    """
    length, width = graph.shape(x)
    split_heads = (length, heads, width // heads)

    def project(name: str, perm: tuple[int, int, int]) -> str:
        with graph.scope(name):
            per_head = graph.op("reshape", linear(graph, x, width, "proj"), shape=split_heads)
            return graph.op("transpose", per_head, perm=perm)

    query = project("query", (1, 0, 2))
    key = project("key", (1, 2, 0) if transpose_key else (1, 0, 2))
    value = project("value", (1, 0, 2))
    scores = graph.op("matmul", query, key)
    mixed = graph.op("transpose", graph.op("matmul", scores, value), perm=(1, 0, 2))
    return graph.op("reshape", mixed, shape=(length, width))
