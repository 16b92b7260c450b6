"""The patterns that TENSAT's paper draws, and one of the paper of tree search, as small graphs.

They are in ``bench/inputs/figures``, so that ``relational-tensat run`` takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from bench.models.builder import GraphBuilder
from bench.models.layers import conv, linear, relu
from relational_tensat.tensor import Graph

FOLDER = Path(__file__).parents[1] / "inputs" / "figures"


def products(count: int) -> Graph:
    """Build products of one input, as BERT has them: [64, 1024] by 1024 columns each."""
    graph = GraphBuilder(f"{count}_products")
    x = graph.input("x", 64, 1024)
    return graph.build(*(linear(graph, x, 1024, f"w{number}") for number in range(count)))


def convolutions(count: int) -> Graph:
    """Build convolutions of one input, as NasNet-A and Inception-v3 have them: 3x3, 128 channels."""
    graph = GraphBuilder(f"{count}_convolutions")
    x = graph.input("x", 1, 128, 28, 28)
    return graph.build(*(conv(graph, x, 128, 3, name=f"w{number}") for number in range(count)))


def sum_of_two_chains() -> Graph:
    """Build a sum of two chains of two convolutions, as NasNet-A has them: two are enough."""
    graph = GraphBuilder("sum_of_two_chains")
    x = graph.input("x", 1, 128, 28, 28)
    chains = [
        conv(graph, conv(graph, x, 64, 3, name=f"first{n}"), 128, 3, name=f"second{n}")
        for n in range(2)
    ]
    return graph.build(graph.op("add", *chains))


def gates() -> Graph:
    """Build two gates of NasRNN's cell: functions of sums of products of an input and a state."""
    graph = GraphBuilder("gates")
    x, state = graph.input("x", 1, 512), graph.input("state", 1, 512)
    sums = [
        graph.op("add", linear(graph, x, 512, f"x{n}"), linear(graph, state, 512, f"state{n}"))
        for n in range(2)
    ]
    return graph.build(graph.op("tanh", sums[0]), graph.op("sigmoid", sums[1]))


def skip_connection() -> Graph:
    """Build a residual block, whose first convolution greedy extraction counts twice."""
    graph = GraphBuilder("skip_connection")
    first = relu(graph, conv(graph, graph.input("x", 1, 64, 28, 28), 64, 3, name="first"))
    return graph.build(graph.op("add", first, conv(graph, first, 64, 3, name="second")))


#: By the name of the file; TENSAT's figures, and ``mcts_fig4`` of the paper of tree search.
FIGURES: Mapping[str, Callable[[], Graph]] = {
    "fig2": lambda: products(2),
    "fig8_3": lambda: products(3),
    "fig9_2": lambda: convolutions(2),
    "fig9_3": lambda: convolutions(3),
    "fig10": sum_of_two_chains,
    "fig11": gates,
    "mcts_fig4": skip_connection,
}
