"""Building graphs: order, types, canonical attributes, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relational_tensat.base.errors import ModelError
from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph
from relational_tensat.tensor.graph import describe


def f32(*shape: int) -> TensorType:
    return TensorType("float32", shape)


def build(*nodes: Node, outputs: tuple[str, ...] = ("y",), **inputs: TensorType) -> Graph:
    weights = {"w": Weight(f32(3, 4))}
    types = inputs or {"x": f32(2, 3)}
    return build_graph("g", types, weights, nodes, outputs, where="model.json")


MATMUL = Node("matmul", ("x", "w"), ("h",))
RELU = Node("relu", ("h",), ("y",))


def test_types_are_inferred() -> None:
    graph = build(MATMUL, RELU)
    assert graph.types == {"x": f32(2, 3), "w": f32(3, 4), "h": f32(2, 4), "y": f32(2, 4)}
    assert graph.output_types() == (f32(2, 4),)
    assert graph.count_ops() == {"matmul": 1, "relu": 1}


def test_nodes_are_sorted() -> None:
    graph = build(RELU, MATMUL)
    assert [node.op for node in graph.nodes] == ["matmul", "relu"]


@settings(max_examples=15, deadline=None)
@given(st.permutations(range(6)))
def test_any_order_gives_a_topological_one(order: list[int]) -> None:
    chain = [Node("relu", (f"v{k}",), (f"v{k + 1}",)) for k in range(5)]
    chain.append(Node("add", ("v2", "v5"), ("y",)))
    graph = build(*(chain[k] for k in order), v0=f32(2))
    known = {"v0"}
    for node in graph.nodes:
        assert known.issuperset(node.inputs)
        known.update(node.outputs)


def test_a_given_order_that_is_topological_is_kept() -> None:
    nodes = [
        Node("relu", ("x",), ("b",)),
        Node("tanh", ("x",), ("a",)),
        Node("add", ("a", "b"), ("y",)),
    ]
    assert [node.op for node in build(*nodes).nodes] == ["relu", "tanh", "add"]


def test_a_long_chain_does_not_exhaust_the_stack() -> None:
    nodes = [Node("relu", (f"v{k}",), (f"v{k + 1}",)) for k in range(3000)]
    graph = build(*reversed(nodes), outputs=("v3000",), v0=f32(1))
    assert len(graph.nodes) == 3000


def test_attributes_are_made_canonical() -> None:
    graph = build(Node("softmax", ("x",), ("y",), {"axis": -1}), MATMUL, outputs=("y", "h"))
    assert {node.op: dict(node.attrs) for node in graph.nodes} == {
        "softmax": {"axis": 1},
        "matmul": {"act": "none"},
    }


def test_several_outputs_have_a_name_each() -> None:
    split = Node("split", ("x",), ("a", "b"), {"axis": 1, "sizes": (1, 2)})
    graph = build(split, outputs=("b", "a"))
    assert graph.output_types() == (f32(2, 2), f32(2, 1))


def test_a_noop_is_one_value_of_several_tensors() -> None:
    graph = build(MATMUL, Node("noop", ("x", "h"), ("y",)))
    assert graph.types["y"] == (f32(2, 3), f32(2, 4))
    assert graph.output_types() == (f32(2, 3), f32(2, 4))


def test_an_input_may_be_an_output() -> None:
    assert build(outputs=("x",)).output_types() == (f32(2, 3),)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([MATMUL, Node("relu", ("hh",), ("y",))], "input 'hh' is not defined; did you mean 'h'"),
        ([MATMUL, Node("relu", ("h",), ("h",))], "the value 'h' is defined twice"),
        ([Node("relu", ("x",), ("x",))], "the value 'x' is defined twice"),
        ([Node("relu", ("x",), ("w",))], "the value 'w' is defined twice"),
        ([Node("relu", ("x",), ())], "a relu node has no outputs"),
        (
            [Node("add", ("x", "b"), ("a",)), Node("relu", ("a",), ("b",))],
            "depends on itself (cyclic graph)",
        ),
        ([Node("relu", ("y",), ("y",))], "depends on itself (cyclic graph)"),
        ([Node("rulu", ("x",), ("y",))], "unknown operator 'rulu'; did you mean 'relu'"),
        ([MATMUL], "output 'y' is not computed by any node"),
        ([Node("relu", ("x", "x"), ("y",))], "relu takes 1 inputs, not 2"),
        ([Node("relu", ("x",), ("y",), {"alpha": 1})], "relu has no attribute 'alpha'"),
        ([Node("add", ("x", "w"), ("y",))], "shapes [2, 3] and [3, 4] do not broadcast"),
        ([Node("relu", ("x",), ("y", "z"))], "has 2 outputs, expected 1"),
        (
            [Node("split", ("x",), ("y",), {"axis": 1, "sizes": (1, 2)})],
            "has 1 outputs, expected 2",
        ),
        ([Node("softmax", ("x",), ("y",), {"axis": 2})], "axis 2 is not in -2..1"),
    ],
)
def test_malformed_graphs_are_refused(nodes: list[Node], message: str) -> None:
    with pytest.raises(ModelError) as caught:
        build(*nodes)
    assert message in str(caught.value)
    assert str(caught.value).startswith("model.json: ")
    assert "\n" not in str(caught.value)


def test_messages_name_the_node() -> None:
    node = Node("add", ("x", "w"), ("y",), name="block/add_1")
    with pytest.raises(ModelError, match=r"node 'block/add_1' \(add\): add: shapes"):
        build(node)
    assert describe(MATMUL) == "matmul -> 'h'"


def test_a_graph_needs_outputs() -> None:
    with pytest.raises(ModelError, match="has no outputs"):
        build(MATMUL, outputs=())


def test_inputs_and_weights_have_different_names() -> None:
    with pytest.raises(ModelError, match="the value 'w' is defined twice"):
        build(MATMUL, w=f32(1))


def test_types() -> None:
    kind = TensorType("bfloat16", (2, 3))
    assert (kind.rank, kind.size, kind.nbytes, kind.is_float) == (2, 6, 12, True)
    assert str(kind) == "bfloat16[2,3]"
    assert kind.with_shape(()) == TensorType("bfloat16", ())
    assert kind.with_shape(()).size == 1


def test_weights_are_kept() -> None:
    data: Any = np.zeros((3, 4), np.float32)
    graph = build_graph("g", {"x": f32(2, 3)}, {"w": Weight(f32(3, 4), data)}, [MATMUL], ["h"])
    assert graph.weights["w"].data is data
