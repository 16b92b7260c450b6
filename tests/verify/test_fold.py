"""Folding what depends on weights only."""

from __future__ import annotations

import numpy as np

from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph
from relational_tensat.verify.fold import fold_alike, fold_weights
from tests.graphs import f32, weight


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
        parts = (graph.inputs, graph.weights, graph.nodes, graph.outputs, graph.metadata)
        checked = build_graph(graph.name, *parts)
        assert (graph.types, graph.nodes) == (checked.types, checked.nodes)


def constant_part(w: Weight, v: Weight) -> Graph:
    return build_graph(
        "g",
        {"x": f32(2, 3)},
        {"w": w, "v": v, "unused": weight(1)},
        [
            Node("add", ("w", "v"), ("s",)),
            Node("transpose", ("s",), ("t",), {"perm": (1, 0)}),
            Node("matmul", ("x", "t"), ("y",)),
        ],
        ["y"],
    )


def test_the_maximal_value_becomes_a_weight() -> None:
    graph = constant_part(weight(4, 3), weight(4, 3, seed=1))
    folded = fold_weights(graph)
    assert [node.op for node in folded.nodes] == ["matmul"]
    assert list(folded.weights) == ["t"]  # neither w, v, s nor the unused one
    data = folded.weights["t"].data
    assert data is not None
    assert data.dtype == np.float32
    w, v = graph.weights["w"].data, graph.weights["v"].data
    assert w is not None
    assert v is not None
    exact = (w.astype(np.float64) + v.astype(np.float64)).T
    np.testing.assert_array_equal(data, exact.astype(np.float32))


def test_what_is_folded_is_stored_in_order() -> None:
    nodes = [Node("transpose", ("w",), ("t",), {"perm": (1, 0)}), Node("add", ("x", "t"), ("y",))]
    graph = build_graph("g", {"x": f32(3, 4)}, {"w": weight(4, 3)}, nodes, ["y"])
    data, own = fold_weights(graph).weights["t"].data, graph.weights["w"].data
    assert data is not None and own is not None and data.flags.c_contiguous
    np.testing.assert_array_equal(data, own.T)


def test_without_data_nothing_folds() -> None:
    graph = constant_part(Weight(f32(4, 3)), weight(4, 3))
    folded = fold_weights(graph)
    assert folded.count_ops() == graph.count_ops()
    assert set(folded.weights) == {"w", "v"}


def test_uniform_weights_stay_one_number() -> None:
    uniform = Weight(f32(4, 3), np.broadcast_to(np.float32(0.02), (4, 3)))
    data = fold_weights(constant_part(uniform, uniform)).weights["t"].data
    assert data is not None
    assert set(data.strides) == {0}
    assert data.flat[0] == np.float32(0.04)


def test_integers_stay_integers() -> None:
    kind = TensorType("int64", (2,))
    graph = build_graph(
        "g",
        {"x": f32(5, 3)},
        {"i": Weight(kind, np.array([0, 1])), "j": Weight(kind, np.array([2, 3]))},
        [Node("add", ("i", "j"), ("k",)), Node("gather", ("x", "k"), ("y",), {"axis": 0})],
        ["y"],
    )
    data = fold_weights(graph).weights["k"].data
    assert data is not None
    assert data.dtype == np.int64
    assert data.tolist() == [2, 4]


def test_a_split_of_weights_folds_into_the_parts_that_are_read() -> None:
    graph = build_graph(
        "g",
        {"x": f32(2, 3)},
        {"w": weight(3, 6)},
        [
            Node("split", ("w",), ("a", "b"), {"axis": 1, "sizes": (2, 4)}),
            Node("matmul", ("x", "b"), ("y",)),
        ],
        ["y"],
    )
    folded = fold_weights(graph)
    assert list(folded.weights) == ["b"]
    assert folded.types["b"] == f32(3, 4)


def test_a_graph_with_nothing_to_fold_is_returned_as_it_is() -> None:
    graph = build_graph("g", {"x": f32(2)}, {}, [Node("relu", ("x",), ("y",))], ["y"])
    assert fold_weights(graph) is graph


def test_constants_stay_nodes() -> None:
    graph = build_graph(
        "g",
        {"x": f32(2, 3)},
        {},
        [
            Node("fill", (), ("c",), {"value": 2.0, "dtype": "float32", "shape": (2, 3)}),
            Node("mul", ("x", "c"), ("y",)),
        ],
        ["y"],
    )
    assert fold_weights(graph) is graph


def test_an_output_that_is_constant_becomes_a_weight() -> None:
    graph = build_graph(
        "g",
        {"x": f32(2)},
        {"w": weight(2)},
        [Node("relu", ("w",), ("c",)), Node("relu", ("x",), ("y",))],
        ["c", "y"],
    )
    folded = fold_weights(graph)
    assert folded.outputs == ("c", "y")
    assert list(folded.weights) == ["c"]
