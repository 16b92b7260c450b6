from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from relational_tensat.base.errors import InputError
from relational_tensat.egraph import EGraph
from relational_tensat.egraph.enode_rows import CHILD_COLUMNS, distinct, fitting_labels
from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph
from tests.egraph.examples import many_outputs, opaque_of, pieces, repeated, wide_concat
from tests.egraph.invariants import assert_invariants
from tests.graphs import f32, shared_matmuls


@pytest.mark.parametrize("values", [[], [3], [2, 1, 2, -5, 1], [7, 7, 7]])
def test_distinct_values_are_those_of_numpy(values: list[int]) -> None:
    array = np.array(values, np.int64)
    found = distinct(array)
    assert found.tolist() == np.unique(array).tolist()
    assert found.dtype == array.dtype


def rows(egraph: EGraph, query: str) -> list[Any]:
    """Return a query's rows; a row of one column as its value."""
    rows = egraph.connection.execute(query).fetchall()
    return [row[0] if len(row) == 1 else row for row in rows]


def ops(egraph: EGraph) -> list[str]:
    return rows(egraph, "SELECT op FROM enode_text ORDER BY id")


def children(egraph: EGraph, enode: int) -> list[int]:
    return rows(egraph, f"SELECT children FROM enode_text WHERE id = {enode}")[0]


def test_labels_of_deep_graphs_lie_closer() -> None:
    """They fit their column at any depth, with space above them, and keep their order."""
    shallow = [4096 * depth for depth in range(1, 1000)]
    assert fitting_labels(shallow) is shallow
    deep = [4096 * depth for depth in range(1, 3_000_000, 999)]
    closer = fitting_labels(deep)
    assert 2**29 < max(closer) <= 2**30
    assert all(low < high for low, high in pairwise(closer))
    assert fitting_labels([]) == []


def test_a_graph_becomes_one_enode_and_class_per_value() -> None:
    egraph = EGraph.create(shared_matmuls())
    assert ops(egraph) == ["input", "weight", "weight", "matmul", "matmul", "add", "relu", "relu"]
    assert rows(egraph, "SELECT id FROM enode WHERE id <> class") == []
    assert [children(egraph, i) for i in range(1, 9)] == [
        [], [], [], [1, 2], [1, 3], [4, 5], [6], [7],
    ]  # fmt: skip
    assert egraph.root == 8
    assert egraph.counts() == (8, 8)
    assert_invariants(egraph)


def test_types_are_those_of_the_graph() -> None:
    graph = many_outputs()
    egraph = EGraph.create(graph)
    types = dict(
        rows(
            egraph,
            "SELECT v.name, e.type FROM original_value AS v JOIN enode_text AS e ON e.id = v.enode",
        )
    )
    assert types == {name: str(graph.types[name]) for name in types}


@pytest.mark.parametrize("operands", [1, CHILD_COLUMNS])
def test_operands_that_fit_are_columns(operands: int) -> None:
    egraph = EGraph.create(wide_concat(operands))
    assert ops(egraph) == ["input"] * operands + ["concat"]
    assert children(egraph, operands + 1) == list(range(1, operands + 1))


def test_more_operands_end_in_a_tuple() -> None:
    egraph = EGraph.create(wide_concat(7))
    assert ops(egraph) == ["input"] * 7 + ["noop", "concat"]
    assert children(egraph, 8) == [5, 6, 7]
    assert children(egraph, 9) == [1, 2, 3, 4, 8]
    assert_invariants(egraph)


def test_many_more_operands_end_in_tuples_of_tuples() -> None:
    egraph = EGraph.create(wide_concat(12))
    assert ops(egraph)[12:] == ["noop", "noop", "concat"]
    assert children(egraph, 13) == [9, 10, 11, 12]
    assert children(egraph, 14) == [5, 6, 7, 8, 13]
    assert children(egraph, 15) == [1, 2, 3, 4, 14]
    types = rows(egraph, "SELECT type FROM enode_text WHERE id IN (14, 15) ORDER BY id")
    parts = [str(f32(1 + i % 3, 2)) for i in range(4, 12)]
    assert types == [f"({', '.join(parts)})", str(f32(24, 2))]


def test_used_outputs_of_an_operator_are_parts_of_it() -> None:
    egraph = EGraph.create(pieces())
    assert ops(egraph) == ["input", "split", "part", "part", "sub", "mul"]
    assert rows(egraph, "SELECT attrs FROM enode_text WHERE op = 'part' ORDER BY id") == [
        '{"index": 0}',
        '{"index": 2}',
    ]
    assert children(egraph, 5) == [4, 3]
    values = rows(egraph, "SELECT name, enode, node_name FROM original_value ORDER BY enode")
    assert values == [
        ("x", 1, ""), ("a", 3, "cut"), ("c", 4, "cut"), ("d", 5, "difference"), ("y", 6, "product"),
    ]  # fmt: skip


def test_an_operator_without_operands_or_with_many() -> None:
    assert ops(EGraph.create(opaque_of(0))) == ["opaque", "part", "part", "relu", "noop"]
    egraph = EGraph.create(opaque_of(6))
    assert ops(egraph) == ["input"] * 6 + ["noop", "opaque", "part", "part", "relu", "noop"]
    assert children(egraph, 8) == [1, 2, 3, 4, 7]
    assert_invariants(egraph)


def test_several_outputs_are_one_root() -> None:
    egraph = EGraph.create(many_outputs())
    assert ops(egraph)[:2] == ["input", "weight"]  # the unused input and weight are left out
    assert ops(egraph)[-2:] == ["noop", "noop"]
    assert "neg" not in ops(egraph)
    outputs = rows(egraph, "SELECT name, class FROM graph_output ORDER BY position")
    assert outputs == [
        ("f", 8), ("x", 1), ("a", 3), ("b", 4), ("c", 5), ("d", 6), ("e", 7),
    ]  # fmt: skip
    assert children(egraph, egraph.root) == [8, 1, 3, 4, 9]
    assert children(egraph, 9) == [5, 6, 7]
    assert_invariants(egraph)


def test_an_output_listed_twice_is_refused() -> None:
    graph = shared_matmuls()
    twice = build_graph("twice", graph.inputs, graph.weights, graph.nodes, ["y", "a", "y"])
    with pytest.raises(InputError, match="twice: an output is listed twice"):
        EGraph.create(twice)


def test_equal_nodes_are_shared() -> None:
    egraph = EGraph.create(repeated())
    assert ops(egraph) == ["input", "relu", "tanh", "sigmoid", "add", "mul"]
    names = rows(
        egraph,
        "SELECT v.name, u.parent FROM original_value AS v JOIN union_find AS u ON u.id = v.enode",
    )
    assert dict(names) == {
        "x": 1, "r1": 2, "r2": 2, "r3": 2, "t1": 5, "t2": 5, "s3": 7, "sum": 8, "y": 9,
    }  # fmt: skip
    (total,) = rows(egraph, "SELECT children FROM enode_text WHERE op = 'add'")
    assert total == [5, 5]
    assert egraph.counts() == (egraph.e_nodes, egraph.e_classes) == (6, 6)
    assert_invariants(egraph)


def test_unions_of_equal_nodes_are_logged_as_congruence() -> None:
    egraph = EGraph.create(repeated())
    logged = rows(egraph, "SELECT iteration, rule, a, b FROM union_log ORDER BY a, b")
    assert logged == [(0, 0, 2, 3), (0, 0, 2, 4), (0, 0, 5, 6)]


def test_operands_in_another_order_are_not_equal() -> None:
    nodes = [
        Node("sub", ("x", "w"), ("a",)),
        Node("sub", ("w", "x"), ("b",)),
        Node("add", ("a", "b"), ("y",)),
    ]
    weights = {"w": Weight(f32(2, 2))}
    egraph = EGraph.create(build_graph("g", {"x": f32(2, 2)}, weights, nodes, ["y"]))
    assert ops(egraph).count("sub") == 2


def test_leaves_of_other_names_are_not_equal() -> None:
    egraph = EGraph.create(shared_matmuls())
    assert ops(egraph).count("weight") == 2


@pytest.mark.parametrize(
    ("array", "number"),
    [
        (np.float32([[0.5]]), 0.5), (np.array(3, np.int64), 3.0), (np.float16([2.0]), 2.0),
        (np.float32([0.5, 0.5]), None), (np.float32(-0.0), None), (np.float32(np.inf), None),
        (np.float32(np.nan), None), (np.array(2**53 + 1), None), (np.array(True), None),
    ],
)  # fmt: skip
def test_a_weight_of_one_element_shows_its_value(array: Any, number: float | None) -> None:
    kind = TensorType(str(array.dtype), array.shape)
    graph = build_graph(
        "g", {}, {"w": Weight(kind, array)}, [Node("identity", ("w",), ("y",))], ["y"]
    )
    egraph = EGraph.create(graph)
    if number is None:
        assert ops(egraph) == ["weight", "identity"]
    else:
        assert ops(egraph) == ["fill", "identity"]
        attrs = {"value": number, "dtype": kind.dtype, "shape": kind.shape}
        assert dict(egraph.catalogue.symbols[0].attrs) == attrs
    assert rows(egraph, "SELECT name FROM original_value ORDER BY enode") == ["w", "y"]


def test_equal_random_operators_with_keys_are_not_shared() -> None:
    def draw(key: str, *outputs: str) -> Node:
        attrs = {
            "op_type": "RandomNormal", "domain": "", "opset": 1, "payload": "",
            "out_types": (("float32", (2,)),), "key": key,
        }  # fmt: skip
        return Node("opaque", (), outputs, attrs)

    def count(first: str, second: str) -> int:
        nodes = [draw(first, "a"), draw(second, "b"), Node("add", ("a", "b"), ("y",))]
        return ops(EGraph.create(build_graph("g", {}, {}, nodes, ["y"]))).count("opaque")

    assert count("", "") == 1
    assert count("1", "2") == 2


def test_operator_names_and_attributes_are_in_the_text_view() -> None:
    egraph = EGraph.create(pieces())
    (row,) = rows(egraph, "FROM enode_text WHERE op = 'split'")
    assert row == (
        2, 2, "split", '{"axis": 0, "sizes": [2, 2, 2]}',
        "(float32[2,2], float32[2,2], float32[2,2])", [1], 0, "original", False,
    )  # fmt: skip


def test_labels_leave_a_gap_below_every_operator() -> None:
    egraph = EGraph.create(shared_matmuls())
    heights = rows(egraph, "SELECT height FROM eclass ORDER BY id")
    step = heights[0]
    assert heights == [step * i for i in (1, 1, 1, 2, 2, 3, 4, 5)]
    assert step > 100


def test_the_database_names_its_format_and_model() -> None:
    egraph = EGraph.create(shared_matmuls())
    meta = dict(rows(egraph, "SELECT key, value FROM meta"))
    assert meta["model"] == "shared_matmuls"
    assert meta["format_version"].isdigit()


@pytest.mark.parametrize(
    "graph", [shared_matmuls(), pieces(), many_outputs(), repeated(), opaque_of(7), wide_concat(9)],
    ids=lambda graph: graph.name,
)  # fmt: skip
def test_loaded_graphs_keep_the_invariants(graph: Graph) -> None:
    assert_invariants(EGraph.create(graph))
