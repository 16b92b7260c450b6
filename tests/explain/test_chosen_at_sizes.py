"""Unions carried out at other sizes: the same as by steps; what holds at some sizes only is named."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest

from relational_tensat.egraph import EGraph
from relational_tensat.explain.unions_at_sizes import ChosenAtSizes, UnlikeValuesError
from relational_tensat.extract.tables import chosen_graph
from relational_tensat.rules.language import parse_rules
from relational_tensat.run.stages.second_search import leave_out
from relational_tensat.tensor import Graph, Node, build_graph
from tests.egraph.extraction import cheapest_graph
from tests.explain.runs import choose_at_random, explored, random_graph, shape_of
from tests.explain.test_other_sizes import RELUS, RESHAPES, chain, of, result_at
from tests.explain.undoing_rules import RULES
from tests.graphs import f32


def cheapest(graph: Graph, *rules: str) -> EGraph:
    egraph = explored(graph, parse_rules("\n".join(rules), "t.rules"))
    cheapest_graph(egraph)
    return egraph


def chosen_at(egraph: EGraph, graphs: Sequence[Graph]) -> ChosenAtSizes:
    return ChosenAtSizes(egraph.connection, graphs)


def test_each_size_has_what_the_steps_lead_to() -> None:
    graphs = [chain(n) for n in (1, 2, 50)]
    chosen = chosen_at(cheapest(chain(5), RELUS.format(""), RESHAPES), graphs)
    explanation = of(chain, 5, RELUS.format(""), RESHAPES)
    assert not chosen.refused
    for place, graph in enumerate(graphs):
        there = chosen.graph(graph, place)
        assert shape_of(there) == shape_of(result_at(explanation, graph))
        assert there.output_types() == graph.output_types()


def test_all_that_holds_here_only_is_named_at_once() -> None:
    """Two pairs of relus, whose rule holds at one size: both e-nodes are to be left out, by one look."""

    def twice(n: int) -> Graph:
        nodes = [
            Node("relu", ("x",), ("a",)),
            Node("relu", ("a",), ("b",)),
            Node("tanh", ("b",), ("c",)),
            Node("relu", ("c",), ("d",)),
            Node("relu", ("d",), ("y",)),
        ]
        return build_graph("g", {"x": f32(n, 6)}, {}, nodes, ["y"])

    made = """(rule gelus (law "relu(relu(a)) = gelu(a)") (from (relu (relu ?a))) (to (gelu ?a))
      (where (= (dim ?a 0) 5)))"""
    egraph = cheapest(twice(5), made)
    chosen = chosen_at(egraph, [twice(4), twice(5)])
    assert [(why.rule, why.place) for _, why in chosen.refused.values()] == [("gelus", 0)] * 2
    assert chosen.left_out == set(chosen.refused)
    assert {where for where, _ in chosen.refused.values()} == {"gelus at b", "gelus at y"}
    leave_out(egraph.database, chosen.left_out)
    cheapest_graph(egraph)
    assert not chosen_at(egraph, [twice(4)]).refused


def test_what_needs_a_class_of_which_all_is_left_out_is_left_out() -> None:
    """The negative is in a class of its own: without it, the sigmoid of it has no operand."""
    nodes = [Node("relu", (a,), (b,)) for a, b in pairwise("xabcdy")]
    graph = build_graph("g", {"x": f32(4, 6)}, {}, nodes, ["y"])
    made = """(rule wrong (law "relu(relu(relu(a))) = sigmoid(neg(a))") (unsound)
      (from (relu (relu (relu ?a)))) (to (sigmoid (neg ?a))))"""
    egraph = cheapest(graph, made)
    assert cheapest_graph(egraph).count_ops()["relu"] == 2
    negatives = egraph.database.execute(
        "SELECT e.id FROM enode e JOIN signature s ON s.id = e.signature "
        "JOIN symbol y ON y.id = s.symbol WHERE y.op = 'neg'"
    )
    leave_out(egraph.database, [number for (number,) in negatives])
    assert cheapest_graph(egraph).count_ops()["relu"] == 5


def test_what_only_keeps_the_search_small_may_fail_there() -> None:
    egraph = cheapest(chain(5), RELUS.format(" (worth (= (dim ?a 0) 10))"))
    chosen = chosen_at(egraph, [chain(4)])
    assert chosen.graph(chain(4), 0).count_ops()["relu"] == 1


def test_values_of_the_original_that_a_rule_makes_one_here_only() -> None:
    egraph = cheapest(chain(5), RELUS.format(" (where (= (dim ?a 0) 10))"))
    chosen = chosen_at(egraph, [chain(4)])
    assert chosen.rule == "relus"
    assert chosen.left_out == frozenset()  # the e-node that is chosen is the original's


def test_values_that_are_one_here_and_two_there() -> None:
    def twins(n: int) -> Graph:
        nodes = [
            Node("reshape", ("x",), ("a",), {"shape": (2, 3 * n)}),
            Node("reshape", ("x",), ("b",), {"shape": (n, 6)}),
            Node("relu", ("a",), ("y",)),
            Node("tanh", ("b",), ("z",)),
        ]
        return build_graph("g", {"x": f32(n, 6)}, {}, nodes, ["y", "z"])

    with pytest.raises(UnlikeValuesError, match="computed as another value is"):
        chosen_at(cheapest(twins(2), RELUS.format("")), [twins(4)])


@pytest.mark.parametrize("seed", range(12))
def test_at_the_same_sizes_it_is_the_chosen_graph(seed: int) -> None:
    """Also of rules of two sources, and of results that no cost would choose."""
    random = Random(seed)
    egraph = explored(random_graph(random), random.sample(RULES, 8))
    choose_at_random(egraph, random)
    chosen = chosen_at(egraph, [egraph.graph])
    assert not chosen.refused
    here = shape_of(chosen_graph(egraph))
    assert shape_of(chosen.graph(egraph.graph, 0)) == here
    assert shape_of(chosen.graph(egraph.graph, None)) == here
