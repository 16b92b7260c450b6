"""BERT as TASO's and TENSAT's experiments have it: the projections and products of attention only.

No softmax, scaling, residual, norm, bias or feed-forward part. A layer's attention does not feed
the next layer, which continues from a product with a fourth weight; all are outputs of the graph.
"""

from __future__ import annotations

from relational_tensat.models.builder import GraphBuilder
from relational_tensat.models.layers import attention, linear, relu
from relational_tensat.tensor import Graph

LAYERS, POSITIONS, WIDTH, HEADS = 8, 64, 1024, 16


def bert() -> Graph:
    """Build it: input [64, 1024]; one output, a tuple of 8 attentions and the last hidden state."""
    graph = GraphBuilder("bert")
    hidden = relu(graph, graph.input("tokens", POSITIONS, WIDTH))
    attentions: list[str] = []
    for layer in range(1, LAYERS + 1):
        with graph.scope(f"layer{layer}"):
            attentions.append(attention(graph, hidden, HEADS, transpose_key=False))
            hidden = linear(graph, hidden, WIDTH, "next")
    joined, *others = [*attentions, hidden]
    with graph.scope("outputs"):
        for value in others:
            joined = graph.op("noop", joined, value)
    return graph.build(joined)
