from __future__ import annotations

from itertools import pairwise
from unittest.mock import patch

import pytest
from hypothesis import given, settings

from relational_tensat.base.process import ProcessOptions
from relational_tensat.egraph import EGraph, rebuild
from relational_tensat.egraph.catalogue import Catalogue
from relational_tensat.egraph.enode_rows import load_rows
from relational_tensat.tensor import Graph, Node, build_graph
from tests.egraph.closure import Closure, Term
from tests.egraph.invariants import assert_invariants
from tests.egraph.random_graphs import Batch, batches, graphs, pairs_of, square_values, unite
from tests.graphs import f32


def closure_of(graph: Graph) -> Closure:
    """Return the oracle on the rows that a graph is loaded as."""
    rows = load_rows(graph, Catalogue(), 1)
    terms = map(Term, rows.signatures, rows.children)
    return Closure(dict(enumerate(terms, start=1)))


def assert_same(egraph: EGraph, closure: Closure) -> None:
    """Fail unless classes and e-nodes are those of the oracle, each by its oldest id."""
    connection = egraph.connection
    parents = dict(connection.execute("SELECT id, parent FROM union_find").fetchall())
    assert parents == closure.partition()
    rows = connection.execute(
        "SELECT id, class, signature, list_filter([c0, c1, c2, c3, c4], lambda c: c > 0) FROM enode"
    ).fetchall()
    classes = {(class_id, Term(sig, tuple(kids))): [number] for number, class_id, sig, kids in rows}
    assert len(classes) == len(rows)
    assert classes == {key: ids[:1] for key, ids in closure.enodes().items()}


@settings(max_examples=18, deadline=None)
@given(graphs(), batches())
def test_rebuild_is_congruence_closure(graph: Graph, steps: list[Batch]) -> None:
    assert_congruence_closure(graph, steps)


@settings(max_examples=8, deadline=None)
@given(graphs(), batches())
def test_with_as_many_classes_as_make_joins_faster(graph: Graph, steps: list[Batch]) -> None:
    with patch.object(rebuild, "MANY_CLASSES", 0):
        assert_congruence_closure(graph, steps)


@settings(max_examples=5, deadline=None)
@given(graphs(), batches())
def test_with_several_threads(graph: Graph, steps: list[Batch]) -> None:
    assert_congruence_closure(graph, steps, threads=2)


def assert_congruence_closure(graph: Graph, steps: list[Batch], threads: int = 1) -> None:
    process = ProcessOptions(threads=threads)
    egraph, closure = EGraph.create(graph, process=process), closure_of(graph)
    assert_same(egraph, closure)
    values = square_values(egraph)
    for batch in steps:
        pairs = pairs_of(batch, values)
        unite(egraph, pairs)
        closure.unite(pairs)
        assert_same(egraph, closure)
    assert_invariants(egraph, "none")
    egraph.close()


def tower(height: int) -> Graph:
    """Return two towers of the same operators on two inputs, and their sum."""
    nodes = []
    for name in ("x", "y"):
        for level in range(height):
            below = name if level == 0 else f"{name}{level}"
            nodes.append(Node("tanh", (below,), (f"{name}{level + 1}",)))
    nodes.append(Node("add", (f"x{height}", f"y{height}"), ("z",)))
    return build_graph("tower", {"x": f32(2, 2), "y": f32(2, 2)}, {}, nodes, ["z"])


def test_one_union_at_the_bottom_closes_level_by_level() -> None:
    egraph = EGraph.create(tower(9))
    assert egraph.counts() == (21, 21)
    report = unite(egraph, [(1, 2)])
    assert (report.merged, report.unions, report.has_equal) == (10, 9, True)
    assert egraph.counts() == (12, 11)
    rules = egraph.connection.execute("SELECT rule, count(*) FROM union_log GROUP BY rule")
    assert dict(rules.fetchall()) == {1: 1, 0: 9}
    assert_invariants(egraph, "none")


def test_a_chain_of_unions_is_one_class_named_by_its_oldest() -> None:
    egraph = EGraph.create(tower(4))
    values = list(range(3, 11))
    unite(egraph, pairwise(values))
    assert {egraph.find(value) for value in values} == {3}
    assert_invariants(egraph, "none")


def test_a_union_of_what_is_one_class_already_changes_nothing() -> None:
    egraph = EGraph.create(tower(2))
    unite(egraph, [(1, 2)])
    before = egraph.connection.execute("FROM enode ORDER BY id").fetchall()
    report = unite(egraph, [(1, 2), (3, 5), (4, 4)])
    assert (report.merged, report.unions, report.has_equal) == (0, 0, False)
    assert egraph.connection.execute("FROM enode ORDER BY id").fetchall() == before


def test_rows_that_change_are_stamped_and_others_are_not() -> None:
    egraph = EGraph.create(tower(3))
    unite(egraph, [(3, 6)])
    stamped = egraph.connection.execute("SELECT id FROM enode WHERE stamp = 1 ORDER BY id")
    # the second tower's base moved into the first's class; the sum has one operand in its place now
    assert [row[0] for row in stamped.fetchall()] == [6, 9]
    assert_invariants(egraph, "none")


@pytest.mark.parametrize("first_filtered", [True, False])
def test_of_equal_enodes_one_that_the_cycle_filter_keeps_survives(first_filtered: bool) -> None:
    egraph = EGraph.create(tower(1))
    dropped = 3 if first_filtered else 4
    egraph.connection.execute(f"UPDATE enode SET filtered = true WHERE id = {dropped}")
    unite(egraph, [(1, 2)])
    rows = egraph.connection.execute("SELECT class, filtered FROM enode_text WHERE op = 'tanh'")
    assert rows.fetchall() == [(3, False)]


def test_equal_enodes_that_are_all_filtered_stay_filtered() -> None:
    egraph = EGraph.create(tower(1))
    egraph.connection.execute("UPDATE enode SET filtered = true WHERE id IN (3, 4)")
    unite(egraph, [(1, 2)])
    rows = egraph.connection.execute("SELECT id, filtered FROM enode_text WHERE op = 'tanh'")
    assert rows.fetchall() == [(3, True)]
