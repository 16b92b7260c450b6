"""Folding a graph that is known at several sizes."""

from __future__ import annotations

import numpy as np

from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph
from relational_tensat.verify.fold_alike import fold_alike
from tests.graphs import f32


def at(n: int) -> Graph:
    """Return a graph of the size n: one sum of weights is the same at all sizes, the other is not."""
    data = np.arange(4, dtype=np.float32)
    weights = {"w": Weight(TensorType("float32", (4,)), data)}
    fill = {"value": 2.0, "dtype": "float32", "shape": (n, 4)}
    nodes = [
        Node("add", ("w", "w"), ("twice",)),
        Node("fill", (), ("filled",), fill),
        Node("add", ("filled", "twice"), ("tall",)),
        Node("mul", ("x", "tall"), ("y",)),
    ]
    return build_graph("g", {"x": f32(n, 4)}, weights, nodes, ["y"])


def test_what_depends_on_sizes_stays_computed() -> None:
    graphs = fold_alike([at(3), at(1), at(5)])
    for graph, n in zip(graphs, (3, 1, 5), strict=True):
        assert graph.count_ops() == {"fill": 1, "add": 1, "mul": 1}
        assert graph.types["tall"] == TensorType("float32", (n, 4))
        assert list(graph.weights) == ["twice"]
        data = graph.weights["twice"].data
        assert data is not None and data.tolist() == [0, 2, 4, 6]
