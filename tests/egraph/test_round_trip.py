from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings

from bench.models import MODELS
from relational_tensat.egraph import EGraph
from relational_tensat.tensor import Graph, Node, build_graph
from relational_tensat.verify.evaluate import SeededWeights, evaluate_graph, random_inputs
from tests.egraph.examples import many_outputs, opaque_of, pieces, repeated, wide_concat
from tests.egraph.extraction import original_graph
from tests.egraph.random_graphs import graphs
from tests.graphs import f32, shared_matmuls


def round_trip(graph: Graph) -> Graph:
    egraph = EGraph.create(graph)
    try:
        return original_graph(egraph)
    finally:
        egraph.close()


def without_dead_nodes(graph: Graph) -> set[Node]:
    """Return what the outputs depend on, hashable."""
    values, live_nodes = set(graph.outputs), set()
    for node in reversed(graph.nodes):
        if values.intersection(node.outputs):
            values.update(node.inputs)
            live_nodes.add(
                (node.op, node.inputs, node.outputs, tuple(node.attrs.items()), node.name)
            )
    return live_nodes


def assert_same_results(before: Graph, after: Graph) -> None:
    inputs, weights = random_inputs(before, 1), SeededWeights(before, 1)
    left, right = (evaluate_graph(graph, inputs, weights) for graph in (before, after))
    assert left.keys() == right.keys()
    for name, value in left.items():
        np.testing.assert_array_equal(value, right[name])


@pytest.mark.parametrize(
    "graph", [shared_matmuls(), many_outputs(), opaque_of(0), opaque_of(7), wide_concat(12)],
    ids=lambda graph: graph.name,
)  # fmt: skip
def test_without_rules_the_same_graph_comes_out(graph: Graph) -> None:
    after = round_trip(graph)
    assert without_dead_nodes(after) == without_dead_nodes(graph)
    assert len(after.nodes) == len(without_dead_nodes(graph))
    assert (after.name, after.inputs, after.outputs) == (graph.name, graph.inputs, graph.outputs)
    assert {name: graph.types[name] for name in after.types} == after.types
    assert all(after.weights[name] is graph.weights[name] for name in after.weights)
    assert after.metadata == graph.metadata


def test_weights_that_nothing_uses_are_left_out_and_inputs_are_not() -> None:
    after = round_trip(many_outputs())
    assert set(after.weights) == {"w"}
    assert set(after.inputs) == {"x", "z"}


def test_an_output_of_an_operator_that_nothing_uses_gets_a_name() -> None:
    after = round_trip(pieces())
    (cut,) = (node for node in after.nodes if node.op == "split")
    assert (cut.outputs[0], cut.outputs[2], cut.name) == ("a", "c", "cut")
    assert cut.outputs[1] not in {"x", "a", "c", "d", "y"}
    assert_same_results(pieces(), after)


def test_equal_nodes_come_out_once() -> None:
    after = round_trip(repeated())
    assert Counter(node.op for node in after.nodes) == {
        "relu": 1, "tanh": 1, "sigmoid": 1, "add": 1, "mul": 1,
    }  # fmt: skip
    assert [node.name for node in after.nodes if node.op in ("relu", "tanh")] == [
        "relu one", "tanh one",
    ]  # fmt: skip
    assert {"r1", "t1", "s3", "sum", "y"} <= set(after.types)
    assert_same_results(repeated(), after)


def test_a_graph_that_returns_a_tuple() -> None:
    nodes = [
        Node("relu", ("x",), ("a",)),
        Node("tanh", ("x",), ("b",)),
        Node("noop", ("a", "b"), ("inner",)),
        Node("noop", ("inner", "x"), ("all",)),
    ]
    graph = build_graph("tuple", {"x": f32(2)}, {}, nodes, ["all"])
    after = round_trip(graph)
    assert after.outputs == ("all",)
    assert after.output_types() == graph.output_types() == (f32(2),) * 3
    assert_same_results(graph, after)


def test_an_output_that_is_an_input_or_a_weight_as_it_is() -> None:
    graph = many_outputs()
    direct = build_graph("direct", graph.inputs, graph.weights, [], ["v", "z"])
    after = round_trip(direct)
    assert (after.outputs, after.nodes, set(after.weights)) == (("v", "z"), (), {"v"})


@settings(max_examples=10, deadline=None)
@given(graphs())
def test_random_graphs_compute_the_same(graph: Graph) -> None:
    after = round_trip(graph)
    assert len(after.nodes) <= len(graph.nodes) + len(graph.outputs)
    assert_same_results(graph, after)


@pytest.mark.parametrize("name", ["nasrnn", "squeezenet", "vit_base", "transformer_transducer"])
def test_published_graphs_keep_their_operators(name: str) -> None:
    graph = MODELS[name]()
    after = round_trip(graph)
    shared = len(graph.nodes) - len(after.nodes)
    assert 0 <= shared <= 2
    assert after.output_types() == graph.output_types()
    if not shared:
        assert without_dead_nodes(after) == without_dead_nodes(graph)
