"""Vision transformers (Dosovitskiy et al., 2021) as the graph-rewriting experiments have them.

64 patches, already embedded; no class token, no head, and no softmax, norm, bias or activation in
the blocks: products, additions, and the reshapes between them.
"""

from __future__ import annotations

from relational_tensat.models.builder import GraphBuilder
from relational_tensat.models.layers import attention, linear, relu
from relational_tensat.tensor import Graph

PATCHES = 64


def vit_base() -> Graph:
    """Build it: 12 blocks, input and output [64, 768]."""
    return _vit("vit_base", blocks=12, width=768, heads=12, mlp_width=3072)


def vit_large() -> Graph:
    """Build it: 24 blocks, input and output [64, 1024]."""
    return _vit("vit_large", blocks=24, width=1024, heads=16, mlp_width=4096)


def vit_huge() -> Graph:
    """Build it: 32 blocks, input and output [64, 1280]."""
    return _vit("vit_huge", blocks=32, width=1280, heads=16, mlp_width=5120)


def transformer_block(
    graph: GraphBuilder,
    x: str,
    *,
    heads: int,
    mlp_width: int,
    transpose_key: bool,
    mlp_relu: bool,
) -> str:
    """Attention, its projection and an MLP of two products, each with its residual: [S, D]."""
    width = graph.shape(x)[1]
    with graph.scope("attention"):
        attention_output = attention(graph, x, heads, transpose_key=transpose_key)
        attention_output = linear(graph, attention_output, width, "output")
        x = graph.op("add", x, attention_output)
    with graph.scope("mlp"):
        inner = linear(graph, x, mlp_width, "expand")
        if mlp_relu:
            inner = relu(graph, inner)
        return graph.op("add", x, linear(graph, inner, width, "reduce"))


def _vit(name: str, *, blocks: int, width: int, heads: int, mlp_width: int) -> Graph:
    graph = GraphBuilder(name)
    x = relu(graph, graph.input("patches", PATCHES, width))
    for block in range(1, blocks + 1):
        with graph.scope(f"block{block}"):
            x = transformer_block(
                graph,
                x,
                heads=heads,
                mlp_width=mlp_width,
                # Only where the plain layout does not fit; the smaller models leave k as it is.
                transpose_key=width // heads != PATCHES,
                mlp_relu=False,
            )
    return graph.build(x)
