"""The film's frames are the graphs between the steps, whatever has been handed on from one to the next."""

from __future__ import annotations

from random import Random
from typing import NoReturn

import duckdb
import pytest

from relational_tensat.base.duckdb import open_database
from relational_tensat.base.errors import NoSolutionError
from relational_tensat.explain.explanation import Explanation, explain
from relational_tensat.explain.terms import Outputs
from relational_tensat.rules.language import parse_rules
from relational_tensat.view import collection
from relational_tensat.view.data.graph_data import Film, GraphFrame
from relational_tensat.view.film import film
from relational_tensat.view.forms import OperatorForms
from relational_tensat.view.frames import Frames
from tests.explain.runs import choose_at_random, explored, random_graph
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


def check(explanation: Explanation) -> None:
    """Check all frames of the film of an explanation."""
    made = frames(film(explanation, OperatorForms(explanation.stored, [])))
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
