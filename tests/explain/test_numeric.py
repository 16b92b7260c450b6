from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relational_tensat.explain.explanation import explain
from relational_tensat.explain.graphs import graph_of
from relational_tensat.explain.numeric import check_numerically
from relational_tensat.rules.language import parse_rules
from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph
from tests.egraph.extraction import FlatCost, cheapest_graph
from tests.explain.runs import explained, explored
from tests.explore.example_rules import example_rules
from tests.graphs import f32, shared_matmuls


def test_equal_tensors() -> None:
    cost = FlatCost(0.1, by_operator={"matmul": 9.0})
    check = check_numerically(
        explained(shared_matmuls(), example_rules("join-products", "twice"), cost)
    )
    assert check.ok
    assert check.tensors == 3  # two of them replaced in one step
    assert check.max_relative_error < check.tolerance


def test_a_wrong_rule_is_found_where_it_was_applied() -> None:
    nodes = [
        Node("tanh", ("x",), ("a",)),
        Node("relu", ("a",), ("b",)),
        Node("relu", ("b",), ("c",)),
    ]
    graph = build_graph("square", {"x": f32(3, 3)}, {}, nodes, ["c"])
    cost = FlatCost(by_operator={"tanh": 9.0})
    check = check_numerically(explained(graph, example_rules("transposed", "twice"), cost))
    assert not check.ok
    assert [line for line in check.failures if "step" in line] == [
        line for line in check.failures if "transposed: a differs by" in line
    ]
    assert len(check.failures) == 2  # the tensor, and the output


def test_a_difference_that_the_outputs_hide_is_found() -> None:
    text = '(rule wrong (law "no law") (from (tanh ?x)) (to (relu ?x)))'
    nodes = [
        Node("tanh", ("x",), ("a",)), Node("sub", ("a", "a"), ("b",)), Node("add", ("b", "x"), ("c",)),
    ]  # fmt: skip
    graph = build_graph("hidden", {"x": f32(3, 3)}, {}, nodes, ["c"])
    rules = parse_rules(text, "wrong.rules")
    check = check_numerically(explained(graph, rules, FlatCost(by_operator={"tanh": 9.0})))
    assert len(check.failures) == 1
    assert "step 1, wrong: a differs by" in check.failures[0]


def test_what_is_left_where_large_numbers_cancel_is_no_difference() -> None:
    nodes = [
        Node("add", ("x", "y"), ("a",)), Node("add", ("a", "z"), ("b",)),
        Node("add", ("y", "z"), ("c",)), Node("add", ("x", "c"), ("d",)), Node("sub", ("b", "d"), ("e",)),
    ]  # fmt: skip
    graph = build_graph("rest", dict.fromkeys("xyz", f32(9, 9)), {}, nodes, ["e"])
    explanation = explained(graph, example_rules("regroup", "zero"))
    assert [step.rule for step in explanation.steps][-1] == "zero"
    check = check_numerically(explanation)
    assert [line for line in check.failures if line.startswith("step")] == []


def test_weights_that_are_no_parameters_are_the_models_own(tmp_path: Path) -> None:
    indices = np.array([2, 0, 1], dtype=np.int64)
    flags = np.array([[True, False, True]])
    weights = {
        "i": Weight(TensorType("int64", (3,)), indices),
        "flags": Weight(TensorType("bool", (1, 3)), flags),
        "w": Weight(f32(80, 3), np.ones((80, 3), dtype=np.float32)),
    }
    nodes = [
        Node("gather", ("w", "i"), ("a",), {"axis": 1}),
        Node("add", ("a", "x"), ("b",)),
        Node("relu", ("b",), ("c",)),
        Node("relu", ("c",), ("y",)),
        Node("identity", ("flags",), ("z",)),
    ]
    graph = build_graph("small", {"x": f32(80, 3)}, weights, nodes, ["y", "z"])
    explanation = explained(graph, example_rules("twice"))
    restored = graph_of(
        explanation.original, explanation.terms, explanation.stored, explanation.names
    )
    assert isinstance(restored, Graph)
    data = {name: weight.data for name, weight in restored.weights.items()}
    np.testing.assert_array_equal(data["i"], indices)
    np.testing.assert_array_equal(data["flags"], flags)
    assert data["w"] is None
    assert check_numerically(explanation).ok


def test_values_are_computed_again_when_they_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relational_tensat.certificate.both_ways._KEPT_BYTES", 0)
    egraph = explored(shared_matmuls(), example_rules("join-products", "twice"))
    cheapest_graph(egraph, FlatCost(0.1, by_operator={"matmul": 9.0}))
    assert check_numerically(explain(egraph.connection)).ok
