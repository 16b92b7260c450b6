"""Every union in the log carries its reason."""

from __future__ import annotations

from random import Random

import pytest

from relational_tensat.egraph import EGraph
from relational_tensat.explain.egraph_tables import StoredEGraph
from relational_tensat.explain.proof import ProofGraph
from relational_tensat.explore import ExplorationOptions
from relational_tensat.rules.language import written_rule
from relational_tensat.rules.library import load_rules
from relational_tensat.tensor import Node, build_graph
from tests.explain.runs import explored, random_graph
from tests.explore.example_rules import example_rules
from tests.explore.graphs import mixed
from tests.graphs import f32


def logged(seed: int) -> EGraph:
    graph = mixed() if seed == 0 else random_graph(Random(seed))
    return explored(
        graph, example_rules(), ExplorationOptions(4, node_limit=500, multi_iterations=2)
    )


@pytest.mark.parametrize("seed", range(4))
def test_edges_connect_every_class(seed: int) -> None:
    egraph = logged(seed)
    graph = ProofGraph(StoredEGraph(egraph.connection))
    for members in graph.members.values():
        for enode in members:
            for member in members[:3]:
                assert enode == member or graph.next_walk(enode, member) is not None


@pytest.mark.parametrize("seed", range(4))
def test_the_reason_is_of_the_union(seed: int) -> None:
    egraph = logged(seed)
    graph = ProofGraph(StoredEGraph(egraph.connection))
    rows = egraph.connection.execute(
        "SELECT u.rule, u.a, u.b, u.iteration, i.rule FROM union_log AS u"
        " JOIN instance_log AS i ON i.id = u.instance ORDER BY u.rowid"
    ).fetchall()
    unions = egraph.connection.execute("SELECT count(*) FROM union_log WHERE rule > 0").fetchone()
    assert unions == (len(rows),)
    assert len(graph.edges) == len(rows)
    for edge, (rule, a, b, _, of_instance) in zip(graph.edges, rows, strict=True):
        assert rule == of_instance
        assert edge.law.rule.name == graph.stored.rules[rule]
        owner = egraph.find(a)
        assert owner == egraph.find(b) == graph.owner(edge.start) == graph.owner(edge.end)
    assert [row[3] for row in rows] == sorted(row[3] for row in rows)


def test_unions_by_congruence_have_no_reason_but_themselves() -> None:
    nodes = [
        Node("identity", ("x",), ("a",)), Node("tanh", ("x",), ("b",)), Node("tanh", ("a",), ("c",)),
        Node("add", ("b", "c"), ("y",)),
    ]  # fmt: skip
    egraph = explored(build_graph("g", {"x": f32(2)}, {}, nodes, ["y"]), example_rules("same"))
    rows = egraph.connection.execute(
        "SELECT DISTINCT instance, source, bindings FROM union_log WHERE rule = 0"
    ).fetchall()
    assert rows == [(None, None, None)]


def test_a_database_has_the_texts_of_its_rules() -> None:
    rules = load_rules(None)
    egraph = explored(mixed(), rules, ExplorationOptions(0))
    rows = egraph.connection.execute(
        "SELECT text, name, file, line FROM rule ORDER BY id"
    ).fetchall()
    assert [written_rule(*row) for row in rows] == rules
