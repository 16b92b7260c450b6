"""Steps carried out at other sizes: what a rule builds there, and where it does not hold."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from relational_tensat.base.errors import InputError, NoSolutionError
from relational_tensat.explain.explanation import Explanation, explain
from relational_tensat.explain.graphs import graph_of
from relational_tensat.explain.other_sizes import ShapeSpecificError, at_other_sizes
from relational_tensat.rules.language import parse_rules
from relational_tensat.tensor import Graph, Node, build_graph
from tests.explain.runs import choose_at_random, explained, explored, random_graph, shape_of
from tests.explain.undoing_rules import RULES
from tests.graphs import f32

RELUS = '(rule relus (law "relu(relu(a)) = relu(a)") (from (relu (relu ?a))) (to (relu ?a)){})'
RESHAPES = """(rule reshapes (law "two reshapes are one")
  (from (reshape (reshape ?a :shape ?s) :shape ?t)) (to (reshape ?a :shape ?t)))"""


def chain(n: int) -> Graph:
    """Return reshapes of [n, 6], and two relus, at a size n."""
    nodes = [
        Node("reshape", ("x",), ("a",), {"shape": (n, 2, 3)}),
        Node("reshape", ("a",), ("b",), {"shape": (2 * n, 3)}),
        Node("relu", ("b",), ("c",)),
        Node("relu", ("c",), ("y",)),
    ]
    return build_graph("g", {"x": f32(n, 6)}, {}, nodes, ["y"])


def of(make: Callable[[int], Graph], n: int, *rules: str) -> Explanation:
    explanation = explained(make(n), parse_rules("\n".join(rules), "t.rules"))
    assert explanation.steps
    return explanation


def result_at(explanation: Explanation, graph: Graph) -> Graph:
    """Return what the steps lead to at the sizes of a graph."""
    (there,) = at_other_sizes(explanation, [graph])
    terms, stored = explanation.terms, explanation.stored
    return graph_of(explanation.result, terms, stored, explanation.names, there)


@pytest.mark.parametrize("n", [1, 2, 50])
def test_what_is_built_has_the_sizes_there(n: int) -> None:
    result = result_at(of(chain, 5, RELUS.format(""), RESHAPES), chain(n))
    assert result.count_ops() == {"reshape": 1, "relu": 1}
    assert result.nodes[0].attrs["shape"] == (2 * n, 3)
    assert result.output_types() == chain(n).output_types()


def test_a_condition_that_holds_here_only() -> None:
    explanation = of(chain, 5, RELUS.format(" (where (= (dim ?a 0) 10))"))
    assert result_at(explanation, chain(5)).count_ops()["relu"] == 1
    with pytest.raises(ShapeSpecificError, match="its condition does not hold there") as caught:
        at_other_sizes(explanation, [chain(4)])
    assert caught.value.step == 0


def test_what_only_keeps_the_search_small_may_fail_there() -> None:
    explanation = of(chain, 5, RELUS.format(" (worth (= (dim ?a 0) 10))"))
    assert result_at(explanation, chain(4)).count_ops()["relu"] == 1


def test_values_that_are_one_here_and_two_there() -> None:
    def twins(n: int) -> Graph:
        nodes = [
            Node("reshape", ("x",), ("a",), {"shape": (2, 3 * n)}),
            Node("reshape", ("x",), ("b",), {"shape": (n, 6)}),
            Node("relu", ("a",), ("c",)),
            Node("relu", ("c",), ("y",)),
            Node("tanh", ("b",), ("z",)),
        ]
        return build_graph("g", {"x": f32(n, 6)}, {}, nodes, ["y", "z"])

    explanation = of(twins, 2, RELUS.format(""))
    with pytest.raises(ShapeSpecificError, match="computed as another value is") as caught:
        at_other_sizes(explanation, [twins(4)])
    assert caught.value.step == -1


def test_values_that_a_step_makes_one_here_only() -> None:
    """The two reshapes are one term after the step here; there the shapes differ."""

    def twins(n: int) -> Graph:
        nodes = [
            Node("reshape", ("x",), ("a",), {"shape": (6 * n,)}),
            Node("reshape", ("a",), ("b",), {"shape": (2, 3 * n)}),
            Node("reshape", ("x",), ("c",), {"shape": (n, 6)}),
            Node("tanh", ("b",), ("y",)),
            Node("relu", ("c",), ("z",)),
        ]
        return build_graph("g", {"x": f32(n, 2, 3)}, {}, nodes, ["y", "z"])

    explanation = of(twins, 2, RESHAPES)
    with pytest.raises(ShapeSpecificError, match="one at the sizes given") as caught:
        at_other_sizes(explanation, [twins(4)])
    assert caught.value.step == 0


@pytest.mark.parametrize("seed", range(25))
def test_at_the_same_sizes_the_steps_lead_where_they_did(seed: int) -> None:
    """Also steps read backward, of two sources, and to results that no cost would choose."""
    random = Random(seed)
    egraph = explored(random_graph(random), random.sample(RULES, 8))
    choose_at_random(egraph, random)
    try:
        explanation = explain(egraph.connection)
    except (InputError, NoSolutionError):
        pytest.skip("no explanation")
    terms, stored = explanation.terms, explanation.stored
    here = graph_of(explanation.result, terms, stored, explanation.names)
    assert shape_of(result_at(explanation, egraph.graph)) == shape_of(here)
    for term, there in at_other_sizes(explanation, [egraph.graph])[0].items():
        signature = stored.signatures[terms[term].signature]
        assert (there.attrs, there.type) == (signature.symbol.attrs, signature.type)
