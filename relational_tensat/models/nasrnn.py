"""NasRNN: five steps of the recurrent cell that architecture search found (Zoph and Le, 2017)."""

from __future__ import annotations

from relational_tensat.models.builder import GraphBuilder
from relational_tensat.models.layers import linear
from relational_tensat.tensor import Graph

STEPS, WIDTH = 5, 512
#: Combinations of the input and the hidden state that a cell starts from.
GATES = 8


def nasrnn() -> Graph:
    """Build it: inputs x_1 .. x_5 [1, 512], output the last hidden state [1, 512].

    The first hidden state is a weight; no weight is shared between steps.
    """
    graph = GraphBuilder("nasrnn")
    inputs = [graph.input(f"x_{step}", 1, WIDTH) for step in range(1, STEPS + 1)]
    hidden = graph.weight("hidden_0", 1, WIDTH)
    for step, x in enumerate(inputs, start=1):
        with graph.scope(f"step{step}"):
            hidden = _cell(graph, x, hidden)
    return graph.build(hidden)


def _cell(graph: GraphBuilder, x: str, hidden: str) -> str:
    def gate(index: int) -> str:
        with graph.scope(f"gate{index}"):
            from_input = linear(graph, x, WIDTH, "input")
            from_hidden = linear(graph, hidden, WIDTH, "hidden")
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
