"""Transformer-Transducer (Zhang et al., 2020), as the graph-rewriting experiments have it.

An audio encoder of 12 blocks and a label encoder of 2, over the same input, and a joint network.
"""

from __future__ import annotations

from relational_tensat.models.builder import GraphBuilder
from relational_tensat.models.layers import linear, relu
from relational_tensat.models.vit import transformer_block
from relational_tensat.tensor import Graph

LENGTH, WIDTH, HEADS, MLP_WIDTH = 80, 512, 8, 2048
AUDIO_BLOCKS, LABEL_BLOCKS = 12, 2
#: Features of a frame of sound, and the size of the vocabulary.
FEATURES, VOCABULARY = 16, 10


def transformer_transducer() -> Graph:
    """Build it: input [80, 512], output [80, 10]."""
    graph = GraphBuilder("transformer_transducer")
    frames = graph.input("frames", LENGTH, WIDTH)
    with graph.scope("audio"):
        audio = linear(graph, linear(graph, frames, FEATURES, "features"), WIDTH, "embed")
        audio = _encoder(graph, audio, AUDIO_BLOCKS)
    with graph.scope("label"):
        label = _encoder(graph, frames, LABEL_BLOCKS)
    with graph.scope("joint"):
        joined = graph.op("concat", audio, label, axis=1)
        hidden = relu(graph, linear(graph, joined, WIDTH, "hidden"))
        return graph.build(linear(graph, hidden, VOCABULARY, "logits"))


def _encoder(graph: GraphBuilder, x: str, blocks: int) -> str:
    for block in range(1, blocks + 1):
        with graph.scope(f"block{block}"):
            x = transformer_block(
                graph, x, heads=HEADS, mlp_width=MLP_WIDTH, transpose_key=True, mlp_relu=True
            )
    return x
