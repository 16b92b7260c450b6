"""Networks of products on sequences: of words, patches of an image, frames of sound."""

from __future__ import annotations

from bench.models.builder import GraphBuilder
from bench.models.layers import attention, linear, relu
from relational_tensat.tensor import Graph

# NasRNN: five steps of the recurrent cell that architecture search found (Zoph and Le, 2017).


STEPS, STATE_WIDTH = 5, 512
#: Combinations of the input and the hidden state that a cell starts from.
GATES = 8


def nasrnn() -> Graph:
    """Build it: inputs x_1 .. x_5 [1, 512], output the last hidden state [1, 512].

    The first hidden state is a weight; no weight is shared between steps.
    """
    graph = GraphBuilder("nasrnn")
    inputs = [graph.input(f"x_{step}", 1, STATE_WIDTH) for step in range(1, STEPS + 1)]
    hidden = graph.weight("hidden_0", 1, STATE_WIDTH)
    for step, x in enumerate(inputs, start=1):
        with graph.scope(f"step{step}"):
            hidden = _cell(graph, x, hidden)
    return graph.build(hidden)


def _cell(graph: GraphBuilder, x: str, hidden: str) -> str:
    def gate(index: int) -> str:
        with graph.scope(f"gate{index}"):
            from_input = linear(graph, x, STATE_WIDTH, "input")
            from_hidden = linear(graph, hidden, STATE_WIDTH, "hidden")
            return graph.op("add", from_input, from_hidden)

    def sigmoid(value: str) -> str:
        return graph.op("sigmoid", value)

    def tanh(value: str) -> str:
        return graph.op("tanh", value)

    def relu(value: str) -> str:
        return graph.op("relu", value)

    gates = [gate(index) for index in range(GATES)]
    pair0 = graph.op("add", relu(gates[0]), sigmoid(gates[3]))
    pair1 = graph.op("add", sigmoid(gates[1]), tanh(gates[2]))
    pair2 = graph.op("mul", sigmoid(gates[4]), tanh(gates[5]))
    pair3 = graph.op("mul", sigmoid(gates[6]), relu(gates[7]))
    left = graph.op("add", sigmoid(pair1), tanh(pair2))
    right = graph.op("mul", tanh(pair0), tanh(pair3))
    return tanh(graph.op("mul", tanh(left), tanh(right)))


# BERT as TASO's and TENSAT's experiments have it: the projections and products of attention only.
#
# No softmax, scaling, residual, norm, bias or feed-forward part. A layer's attention does not feed
# the next layer, which continues from a product with a fourth weight; all are outputs of the graph.


def bert() -> Graph:
    """Build it: input [64, 1024]; one output, a tuple of 8 attentions and the last hidden state."""
    layers, positions, width, heads = 8, 64, 1024, 16
    graph = GraphBuilder("bert")
    hidden = relu(graph, graph.input("tokens", positions, width))
    attentions: list[str] = []
    for layer in range(1, layers + 1):
        with graph.scope(f"layer{layer}"):
            attentions.append(attention(graph, hidden, heads, transpose_key=False))
            hidden = linear(graph, hidden, width, "next")
    joined, *others = [*attentions, hidden]
    with graph.scope("outputs"):
        for value in others:
            joined = graph.op("noop", joined, value)
    return graph.build(joined)


# Vision transformers (Dosovitskiy et al., 2021) as the graph-rewriting experiments have them.
#
# 64 patches, already embedded; no class token, no head, and no softmax, norm, bias or activation in
# the blocks: products, additions, and the reshapes between them.


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


# Transformer-Transducer (Zhang et al., 2020), as the graph-rewriting experiments have it.
#
# An audio encoder of 12 blocks and a label encoder of 2, over the same input, and a joint network.


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
