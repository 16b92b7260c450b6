"""Equal weights become one, and nothing else does."""

from __future__ import annotations

import numpy as np

from relational_tensat.run.pipeline import optimize
from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph
from relational_tensat.tensor.uses import distinct_nodes, share_equal_weights


def graph_of(**weights: Weight) -> Graph:
    """Return the sum of the input's products with each weight."""
    nodes = [Node("matmul", ("x", name), (f"y-{name}",)) for name in weights]
    total = "y-" + next(iter(weights))
    for index, name in enumerate(list(weights)[1:]):
        nodes.append(Node("add", (total, f"y-{name}"), (f"s{index}",)))
        total = f"s{index}"
    return build_graph("g", {"x": TensorType("float32", (2, 4))}, weights, nodes, [total])


def weight(array: np.ndarray) -> Weight:
    return Weight(TensorType(str(array.dtype), array.shape), array)


A = np.arange(16, dtype=np.float32).reshape(4, 4)


def test_equal_weights_become_the_first_of_them() -> None:
    other = A.copy()
    other[2, 1] += 1  # not among the elements compared first
    shared = share_equal_weights(graph_of(a=weight(A), b=weight(A.copy()), c=weight(other)))
    assert list(shared.weights) == ["a", "c"]
    assert [node.inputs[1] for node in shared.nodes if node.op == "matmul"] == ["a", "a", "c"]


def test_nodes_are_distinct_by_operators_attributes_and_operands() -> None:
    other = A + 1
    graph = graph_of(a=weight(A), b=weight(A.copy()), c=weight(other))
    assert distinct_nodes(graph) == 5
    assert distinct_nodes(share_equal_weights(graph)) == 4  # one product is computed once
    bias = Node("add", ("y-a", "b"), ("s",))
    weights = {"a": weight(A), "b": weight(A.copy())}
    product = Node("matmul", ("x", "a"), ("y-a",))
    graph = build_graph("g", {"x": TensorType("float32", (4, 4))}, weights, [product, bias], ["s"])
    assert distinct_nodes(graph) == distinct_nodes(share_equal_weights(graph)) == 2


def test_a_repeated_element_is_not_the_whole() -> None:
    ones, full = np.broadcast_to(np.float32(1), (4, 4)), np.ones((4, 4), np.float32)
    shared = share_equal_weights(graph_of(a=weight(ones), b=weight(np.broadcast_to(ones, (4, 4)))))
    assert list(shared.weights) == ["a"]
    row = np.broadcast_to(np.arange(4, dtype=np.float32), (4, 4))
    graph = graph_of(a=weight(row), b=weight(full))
    assert share_equal_weights(graph) is graph


def test_weights_without_data_and_zeros_of_two_signs_stay_apart() -> None:
    unknown = Weight(TensorType("float32", (4, 4)), None)
    graph = graph_of(a=unknown, b=unknown)
    assert share_equal_weights(graph) is graph
    zeros = np.zeros((4, 4), np.float32)
    graph = graph_of(a=weight(zeros), b=weight(-zeros))
    assert share_equal_weights(graph) is graph


def test_layers_that_compute_the_same_are_computed_once() -> None:
    graph = graph_of(a=weight(A), b=weight(A.copy()))
    result = optimize(graph)
    assert result.ops_before["matmul"] == 2
    assert result.ops_after["matmul"] == 1
    assert result.verification.ok
