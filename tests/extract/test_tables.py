from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from relational_tensat.cost.source import graph_cost_us
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.extract import UNUSED, ExtractionOptions, dag_cost_us, extract
from relational_tensat.extract.tables import (
    TableProblem,
    choose,
    chosen_graph,
    extraction_problem,
    rules_of_chosen,
)
from relational_tensat.tensor import Graph, Node, Weight, build_graph
from tests.egraph.examples import many_outputs, opaque_of, pieces, wide_concat
from tests.egraph.extraction import FlatCost, cheapest_graph
from tests.explore.example_rules import example_rules
from tests.graphs import f32, shared_matmuls


def graph_of(nodes: Sequence[Node], outputs: Sequence[str], weights: Sequence[str] = ()) -> Graph:
    inputs = {"x": f32(2, 2)}
    return build_graph("g", inputs, {w: Weight(f32(2, 2)) for w in weights}, nodes, outputs)


def explored(graph: Graph, *names: str) -> EGraph:
    egraph = EGraph.create(graph)
    explore(egraph, example_rules(*names), ExplorationOptions(iterations=3))
    return egraph


def children(table: TableProblem) -> list[list[int]]:
    return [table.problem.children(node).tolist() for node in range(table.problem.n_nodes)]


WEIGHTED = graph_of(
    [
        Node("matmul", ("w", "v"), ("p",)),
        Node("relu", ("p",), ("q",)),
        Node("matmul", ("x", "q"), ("r",)),
        Node("add", ("r", "r"), ("y",)),
    ],
    ["y"],
    ["w", "v"],
)


def test_arrays_of_a_graph() -> None:
    table = extraction_problem(EGraph.create(WEIGHTED), FlatCost(3.0))
    problem = table.problem
    assert table.enodes.tolist() == [1, 2, 3, 4, 5, 6, 7]  # x w v p q r y
    assert problem.node_class.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert children(table) == [[], [], [], [1, 2], [3], [0, 4], [5]]
    assert problem.cost_us.tolist() == [0, 0, 0, 0, 0, 3, 3]  # what weights alone give is free
    assert problem.original.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert (problem.n_classes, problem.root) == (7, 6)


def test_arrays_of_an_explored_graph() -> None:
    # x, c, d, y of shared_matmuls: relu(relu(c)) = relu(c), so that d and y are one class
    nodes = [
        Node("tanh", ("x",), ("c",)),
        Node("relu", ("c",), ("d",)),
        Node("relu", ("d",), ("y",)),
    ]
    egraph = explored(graph_of(nodes, ["y"]), "twice")
    table = extraction_problem(egraph, FlatCost())
    problem = table.problem
    # the second relu, now of its own class, closes a cycle and is filtered
    assert table.enodes.tolist() == [1, 2, 3]
    assert problem.node_class.tolist() == [0, 1, 2]
    assert children(table) == [[], [0], [1]]
    assert problem.original.tolist() == [0, 1, 2]
    assert problem.root == 2


def test_enodes_of_one_class_and_of_rules() -> None:
    nodes = [Node("tanh", ("x",), ("a",)), Node("add", ("a", "x"), ("y",))]
    table = extraction_problem(explored(graph_of(nodes, ["y"]), "swap"), FlatCost())
    problem = table.problem
    assert problem.node_class.tolist() == [0, 1, 2, 2]
    assert children(table) == [[], [0], [0, 1], [0, 1]]
    assert problem.original.tolist() == [0, 1, 2]
    assert problem.cost_us.tolist() == [0, 1, 1, 1]


def test_costs_that_the_user_puts_in_are_kept() -> None:
    egraph = EGraph.create(WEIGHTED)
    extraction_problem(egraph, FlatCost())
    egraph.connection.execute(
        "UPDATE cost SET cost_us = 7.5, source = 'mine' WHERE signature IN"
        " (SELECT s.id FROM signature AS s JOIN symbol AS y ON y.id = s.symbol WHERE y.op = 'add')"
    )
    table = extraction_problem(egraph, FlatCost(2.0))
    assert table.problem.cost_us.tolist() == [0, 0, 0, 0, 0, 1, 7.5]
    sources = egraph.connection.execute("SELECT source, count(*) FROM cost GROUP BY source")
    assert dict(sources.fetchall()) == {"flat": 5, "mine": 1}


def test_costs_put_in_before_the_first_extraction_are_kept() -> None:
    egraph = EGraph.create(WEIGHTED)
    egraph.connection.execute(
        "INSERT INTO cost SELECT e.signature, 0.5, 'mine' FROM enode_text AS t"
        " JOIN enode AS e ON e.id = t.id WHERE t.op = 'add'"
    )
    assert extraction_problem(egraph, FlatCost()).problem.cost_us.tolist()[-2:] == [1, 0.5]


def test_each_signature_is_costed_once() -> None:
    requests = []

    class Spy(FlatCost):
        def cost_us(self, op, inputs, output, attrs):  # type: ignore[no-untyped-def]
            requests.append((op, inputs, output, dict(attrs)))
            return 1.0

    egraph = EGraph.create(shared_matmuls())
    extraction_problem(egraph, Spy())
    extraction_problem(egraph, Spy())
    square = f32(64, 64)
    assert requests.count(("matmul", (square, square), square, {"act": "none"})) == 1
    assert len(requests) == 6  # x, w1, w2, matmul, add, relu


def test_a_class_with_a_constant_in_it_is_made_of_constants_only() -> None:
    nodes = [Node("sub", ("x", "x"), ("a",)), Node("relu", ("a",), ("b",)),
             Node("add", ("b", "x"), ("y",))]  # fmt: skip
    egraph = explored(graph_of(nodes, ["y"]), "zero")
    table = extraction_problem(egraph, FlatCost())
    # x, relu, add, fill: relu of a constant is one, and x - x is not worth choosing
    assert table.enodes.tolist() == [1, 3, 4, 5]
    assert table.problem.cost_us.tolist() == [0, 0, 1, 0]
    assert table.problem.original.tolist() == [0, 3, 1, 2]
    after = cheapest_graph(egraph)
    assert after.count_ops() == {"fill": 1, "relu": 1, "add": 1}
    assert graph_cost_us(after, FlatCost()) == 1


def test_constants_far_below_are_settled_in_order() -> None:
    nodes = [Node("sub", ("x", "x"), ("z",)), Node("sub", ("v", "v"), ("u",))]
    names = ["z", "u"]
    for number in range(6):
        nodes.append(Node("mul", (names[-1], names[-2]), (f"m{number}",)))
        names.append(f"m{number}")
    nodes.append(Node("add", (names[-1], "x"), ("y",)))
    egraph = explored(graph_of(nodes, ["y"], ["v"]), "zero")
    table = extraction_problem(egraph, FlatCost())
    assert dag_cost_us(table.problem, table.problem.original) == 1


def test_random_operators_are_never_constant() -> None:
    attrs = {
        "op_type": "Bernoulli", "domain": "", "opset": 15, "payload": "",
        "out_types": (("float32", (2, 2)),),
    }  # fmt: skip

    def costs(key: str) -> tuple[float, float]:
        nodes = [Node("opaque", ("w",), ("r",), {**attrs, "key": key}),
                 Node("relu", ("r",), ("s",)), Node("add", ("s", "x"), ("y",))]  # fmt: skip
        graph = graph_of(nodes, ["y"], ["w"])
        table = extraction_problem(EGraph.create(graph), FlatCost())
        return (
            dag_cost_us(table.problem, table.problem.original),
            graph_cost_us(graph, FlatCost()),
        )

    assert costs("") == (1, 1)
    assert costs("unique") == (3, 3)


@pytest.mark.parametrize(
    "graph",
    [WEIGHTED, shared_matmuls(), many_outputs(), pieces(), opaque_of(7), wide_concat(7)],
    ids=lambda graph: graph.name,
)
def test_the_problem_and_the_graph_agree_on_costs(graph: Graph) -> None:
    cost = FlatCost(2.0, {"tanh": 5.0, "relu": 0.25})
    egraph = EGraph.create(graph)
    table = extraction_problem(egraph, cost)
    original = dag_cost_us(table.problem, table.problem.original)
    choose(egraph, table, table.problem.original)
    assert original == graph_cost_us(chosen_graph(egraph), cost)
    explore(egraph, example_rules("swap", "join-products", "twice"), ExplorationOptions(3))
    table = extraction_problem(egraph, cost)
    extraction = extract(table.problem, ExtractionOptions("greedy-dag"))
    choose(egraph, table, extraction.choice)
    assert extraction.cost_us == pytest.approx(graph_cost_us(chosen_graph(egraph), cost), abs=1e-9)
    assert extraction.cost_us <= original


def test_a_choice_is_written_and_replaced() -> None:
    egraph = EGraph.create(WEIGHTED)
    table = extraction_problem(egraph, FlatCost())
    choice = table.problem.original.copy()
    choose(egraph, table, choice)
    choose(egraph, table, choice)
    rows = egraph.connection.execute("SELECT class, enode FROM chosen ORDER BY class").fetchall()
    assert rows == [(i, i) for i in range(1, 8)]
    choice[1:] = UNUSED
    choose(egraph, table, choice)
    assert egraph.connection.execute("FROM chosen").fetchall() == [(1, 1)]


def test_the_rules_of_a_choice() -> None:
    egraph = EGraph.create(shared_matmuls())
    explore(egraph, example_rules(), ExplorationOptions(2))
    table = extraction_problem(egraph, FlatCost(1.0, {"matmul": 10.0}))
    choose(egraph, table, table.problem.original)
    assert rules_of_chosen(egraph) == {}
    choose(egraph, table, extract(table.problem).choice)
    rules = rules_of_chosen(egraph)
    assert "join-products" in rules
    chosen = egraph.connection.execute(
        "SELECT count(*) FROM chosen JOIN enode ON enode.id = chosen.enode WHERE iteration > 0"
    )
    assert sum(rules.values()) == chosen.fetchall()[0][0]


def test_names_survive_where_their_values_do() -> None:
    egraph = explored(shared_matmuls(), "twice")
    after = cheapest_graph(egraph)
    assert [(node.op, node.inputs, node.outputs) for node in after.nodes] == [
        ("matmul", ("x", "w1"), ("a",)),
        ("matmul", ("x", "w2"), ("b",)),
        ("add", ("a", "b"), ("c",)),
        ("relu", ("c",), ("y",)),  # also d; the output's name comes first
    ]


def test_new_values_get_names_that_are_free() -> None:
    nodes = [Node("tanh", ("x",), ("neg_5",)), Node("sub", ("neg_5", "x"), ("y",))]
    egraph = explored(graph_of(nodes, ["y"]), "negate")
    after = cheapest_graph(egraph, FlatCost(1.0, {"sub": 9.0}))
    (new,) = (node for node in after.nodes if node.op == "neg")
    assert new.outputs[0] not in {"x", "y", "neg_5"}
    assert after.nodes[-1].outputs == ("y",)


def test_new_values_are_not_named_like_an_unused_input() -> None:
    graph = graph_of([Node("sub", ("x", "x"), ("t",)), Node("sub", ("t", "x"), ("y",))], ["y"])
    new = {f"neg_{number}": f32(2, 2) for number in range(9)}
    graph = build_graph("g", {**graph.inputs, **new}, {}, graph.nodes, ["y"])
    after = cheapest_graph(explored(graph, "negate"), FlatCost(1.0, {"sub": 9.0}))
    assert after.count_ops() == {"neg": 1, "add": 2}


def test_two_outputs_in_one_class_keep_both_names() -> None:
    nodes = [Node("relu", ("x",), ("b",)), Node("relu", ("b",), ("a",))]
    graph = graph_of(nodes, ["a", "b", "x"])
    after = cheapest_graph(explored(graph, "twice"), FlatCost(1.0, {"identity": 0.0}))
    assert after.outputs == ("a", "b", "x")
    assert [(node.op, node.inputs, node.outputs) for node in after.nodes] == [
        ("relu", ("x",), ("a",)),
        ("identity", ("a",), ("b",)),
    ]


def test_an_output_that_became_an_input_or_weight() -> None:
    nodes = [Node("identity", ("x",), ("y",)), Node("identity", ("w",), ("z",))]
    after = cheapest_graph(explored(graph_of(nodes, ["y", "z"], ["w"]), "same"))
    assert [(node.op, node.inputs, node.outputs) for node in after.nodes] == [
        ("identity", ("x",), ("y",)),
        ("identity", ("w",), ("z",)),
    ]
    assert set(after.weights) == {"w"}


def test_an_output_that_became_a_constant() -> None:
    nodes = [Node("sub", ("x", "x"), ("y",))]
    after = cheapest_graph(explored(graph_of(nodes, ["y"]), "zero"))
    assert [(node.op, node.outputs) for node in after.nodes] == [("fill", ("y",))]
    assert set(after.inputs) == {"x"}


def test_parts_of_a_new_split_are_named_after_the_values_they_are() -> None:
    egraph = EGraph.create(shared_matmuls())
    explore(egraph, example_rules("join-products"), ExplorationOptions(1))
    after = cheapest_graph(egraph, FlatCost(1.0, {"matmul": 10.0}))
    assert after.count_ops()["matmul"] == 1
    (split,) = (node for node in after.nodes if node.op == "split")
    assert split.outputs == ("a", "b")
    assert split.name == ""


def test_operators_of_many_operands_get_them_back() -> None:
    for graph in (opaque_of(9), wide_concat(13)):
        after = cheapest_graph(EGraph.create(graph))
        assert after.nodes[0].inputs == graph.nodes[0].inputs
        np.testing.assert_equal(after.types[after.outputs[0]], graph.types[graph.outputs[0]])
