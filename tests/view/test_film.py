"""The film's frames are the graphs between the steps, whatever has been handed on from one to the next."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import NoReturn

import duckdb
import pytest

from relational_tensat.base.duckdb import open_database
from relational_tensat.base.errors import NoSolutionError
from relational_tensat.explain.explanation import Explanation, explain
from relational_tensat.explain.rewrite import RewriteStep
from relational_tensat.explain.terms import Outputs, TermCosts, Terms
from relational_tensat.rules.language import parse_rules
from relational_tensat.tensor import Node, build_graph
from relational_tensat.view import collection
from relational_tensat.view.classes import OperatorForms
from relational_tensat.view.data.graph_data import Film, GraphFrame, ValueRow
from relational_tensat.view.film import film
from relational_tensat.view.frames import Frames
from tests.egraph.extraction import cheapest_graph
from tests.explain.runs import choose_at_random, explained, explored, random_graph
from tests.explore.example_rules import example_rules
from tests.graphs import f32
from tests.tiers import seeds
from tests.view.runs import stored_run

RULES = parse_rules(
    """
    (rule swap (law "a + b = b + a") (from (add ?a ?b)) (to (add ?b ?a)))
    (rule regroup (law "(a + b) + c = a + (b + c)")
      (from (add (add ?a ?b) ?c)) (to (add ?a (add ?b ?c))))
    (rule twice (law "relu is idempotent") (from (relu (relu ?x))) (to (relu ?x)))
    (rule same (law "the identity is nothing") (from (identity ?x)) (to ?x))
    """,
    "film.rules",
)


def frames(story: Film) -> list[GraphFrame]:
    """Return all graphs of a film, each made of the one before."""
    made = [story.start]
    for step in story.steps:
        values = {value.id: value for value in made[-1].values}
        for gone in step.change.gone:
            del values[gone]
        values.update({value.id: value for value in step.change.put})
        made.append(GraphFrame(tuple(values.values()), step.change.outputs))
    return made


def as_text(frame: GraphFrame, explanation: Explanation) -> list[str]:
    """Return what each output is, spelled out."""
    enodes = explanation.stored.nodes
    values = {value.id: value for value in frame.values}

    def text(name: str) -> str:
        value = values[name]
        return f"{enodes[value.enode].signature}({','.join(map(text, value.inputs))})"

    return [text(name) for name in frame.outputs]


def terms_as_text(outputs: Outputs, explanation: Explanation) -> list[str]:
    """Return the same of terms."""

    def text(term: int) -> str:
        signature, children = explanation.terms[term]
        return f"{signature}({','.join(map(text, children))})"

    return [text(term) for term in outputs]


def by_term(frame: GraphFrame, outputs: Outputs, terms: Terms) -> dict[int, ValueRow]:
    """Return a frame's values by the terms that they are in a graph."""
    values = {value.id: value for value in frame.values}
    found: dict[int, ValueRow] = {}
    pending = list(zip(outputs, frame.outputs, strict=True))
    while pending:
        term, name = pending.pop()
        if term not in found:
            found[term] = values[name]
            pending += zip(terms[term].children, values[name].inputs, strict=True)
        assert found[term].id == name
    return found


def check_handed_on(
    rewrite: RewriteStep, before: GraphFrame, after: GraphFrame, terms: Terms
) -> None:
    """Check the ids and names after a step by what becomes of each term of the whole graph."""
    became = {replaced.before: replaced.after for replaced in rewrite.replaced}
    origins: dict[int, list[ValueRow]] = {}
    for term, value in sorted(by_term(before, rewrite.before, terms).items()):
        if term not in became:
            signature, children = terms[term]
            became[term] = terms.id_of(signature, [became[child] for child in children])
        origins.setdefault(became[term], []).append(value)
    used = {value.id for value in before.values}
    for term, value in by_term(after, rewrite.after, terms).items():
        earlier = origins.get(term, [])
        assert value.names == tuple(dict.fromkeys(n for row in earlier for n in row.names))
        assert value.id == earlier[0].id if earlier else value.id not in used


def check(explanation: Explanation) -> None:
    """Check all frames of the film of an explanation, and the costs of its graphs."""
    story = film(explanation, OperatorForms(explanation.stored, []))
    made = frames(story)
    terms = explanation.terms
    for step, told, rewrite, (before, after) in zip(
        story.steps, explanation.steps, explanation.rewrites, pairwise(made), strict=True
    ):
        check_handed_on(rewrite, before, after, terms)
        old = {value.id: value for value in before.values}
        assert all(old.get(value.id) != value for value in step.change.put)
        alone = TermCosts(terms, explanation.stored)
        assert told.cost_us == sum(alone.term_us(term) for term in terms.of(rewrite.after))
        for term, value in by_term(after, rewrite.after, terms).items():
            owners = tuple(int(name.split(".")[0]) for name in value.inputs)
            node = explanation.stored.nodes[value.enode]
            assert (node.signature, node.children) == (terms[term].signature, owners)
            assert (node.owner, alone.is_constant(term)) == (value.eclass, value.is_constant)
    graphs = [explanation.original, *(rewrite.after for rewrite in explanation.rewrites)]
    assert len(made) == len(graphs)
    for frame, graph in zip(made, graphs, strict=True):
        assert as_text(frame, explanation) == terms_as_text(graph, explanation)
        assert len(frame.values) == len(explanation.terms.of(graph))


@pytest.mark.parametrize("seeds", seeds(24))
def test_frames_are_the_graphs_of_the_explanation(seeds: range) -> None:
    steps = 0
    for seed in seeds:
        random = Random(seed)
        egraph = explored(random_graph(random), RULES)
        choose_at_random(egraph, random)
        explanation = explain(egraph.connection)
        steps += len(explanation.steps)
        check(explanation)
    assert steps > len(seeds) * 5 // 6


def test_names_and_costs_of_a_run() -> None:
    with open_database(stored_run("shared_matmuls")) as connection:
        explanation = explain(connection)
        costs = dict(connection.execute("SELECT signature, cost_us FROM cost").fetchall())
        forms = OperatorForms(explanation.stored, [costs])
        story = film(explanation, forms)
        given, _ = Frames(explanation.stored, forms).original()
        check(explanation)
    assert [value.names for value in given.values] == [
        ("x",), ("w1",), ("w2",), ("a",), ("b",), ("c",), ("d",), ("y",),
    ]  # fmt: skip
    for frame, cost_us in zip(
        frames(story),
        [explanation.cost_before_us, *(step.cost_us for step in explanation.steps)],
        strict=True,
    ):
        costs_us = [forms.all()[v.form].costs_us[0] for v in frame.values if not v.is_constant]
        assert abs(sum(cost or 0.0 for cost in costs_us) - cost_us) < 1e-9


def test_without_a_way_there_is_a_page_without_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def explain(connection: duckdb.DuckDBPyConnection) -> NoReturn:
        raise NoSolutionError("no explanation found: no way")

    monkeypatch.setattr(collection, "explain", explain)
    with open_database(stored_run("shared_matmuls")) as connection:
        data = collection.collect(connection, check=True)
    assert data.film is None
    assert data.no_film == "no explanation found: no way"
    assert data.search.rules
    assert data.result.values


@pytest.mark.parametrize("forward", [True, False])
def test_a_value_becomes_another_one_that_is_there(forward: bool) -> None:
    nodes = [
        Node("add", ("x", "y"), ("a",)),
        Node("add", ("y", "x"), ("b",)),
        Node("relu", ("b" if forward else "a",), ("c",)),
        Node("mul", ("a" if forward else "b", "c"), ("d",)),
    ]
    graph = build_graph("g", {"x": f32(2, 2), "y": f32(2, 2)}, {}, nodes, ["d"])
    egraph = explored(graph, RULES)
    cheapest_graph(egraph, None)
    ((kept,), (other,)) = egraph.connection.execute(
        "SELECT enode FROM original_value WHERE name IN ('a', 'b') ORDER BY name"
    ).fetchall()
    egraph.connection.execute(
        "UPDATE chosen SET enode = ? WHERE enode IN (?, ?)",
        [other if forward else kept, kept, other],
    )
    explanation = explain(egraph.connection)
    check(explanation)
    (step,) = film(explanation, OperatorForms(explanation.stored, [])).steps
    assert len(step.change.gone) == 1
    user = ("c",) if forward else ("d",)  # of the value that is gone
    assert [value.names for value in step.change.put] == [("a", "b"), user]


def test_what_is_computed_from_a_constant_becomes_one() -> None:
    nodes = [Node("sub", ("x", "x"), ("a",)), Node("relu", ("a",), ("b",))]
    graph = build_graph("g", {"x": f32(2, 2)}, {}, nodes, ["b"])
    explanation = explained(graph, example_rules("zero"))
    check(explanation)
    (step,) = film(explanation, OperatorForms(explanation.stored, [])).steps
    assert [(value.names, value.is_constant) for value in step.change.put] == [
        (("a",), True),
        (("b",), True),
    ]
