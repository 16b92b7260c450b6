"""From chosen e-nodes back to a graph."""

from __future__ import annotations

import numpy as np

from relational_tensat.run.workbench import EGraph
from relational_tensat.tensor import TensorType, build_graph
from relational_tensat.tensor.graph import Node, Weight


def test_an_output_that_is_a_weight_of_one_number_keeps_its_name() -> None:
    size = Weight(TensorType("int64", ()), np.array(60))
    x = TensorType("float32", (3,))
    graph = build_graph("size", {"x": x}, {"n": size}, [Node("relu", ("x",), ("y",))], ("n", "y"))
    with EGraph.of(graph) as egraph:
        chosen = egraph.extract().graph
    assert chosen.outputs == ("n", "y")
    assert chosen.types["n"] == size.type
    assert "n" not in chosen.weights
    assert chosen.count_ops()["fill"] == 1
