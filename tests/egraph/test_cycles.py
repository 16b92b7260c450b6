from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from relational_tensat.egraph import EGraph, cycles
from relational_tensat.egraph.cycle_search import break_cycles
from relational_tensat.egraph.cycles import filter_cycles, reject_cyclic_applications
from relational_tensat.tensor import Graph, Node, build_graph
from tests.egraph.invariants import assert_invariants
from tests.egraph.random_graphs import Batch, batches, graphs, pairs_of, square_values, unite
from tests.graphs import f32


@dataclass(frozen=True)
class Row:
    """An e-node as the cycle filter sees it."""

    id: int
    owner: int
    children: tuple[int, ...]
    filtered: bool


#: How many bindings a match has.
LEAVES = 3


def matched() -> st.SearchStrategy[tuple[int, list[int]]]:
    """Where a match is: its root and its variables, by their places among all that may be."""
    place = st.integers(0, 99)
    return st.tuples(place, st.lists(place, min_size=1, max_size=LEAVES))


def rows_of(egraph: EGraph) -> dict[int, Row]:
    rows = egraph.connection.execute("SELECT id, class, children, filtered FROM enode_text")
    return {row[0]: Row(row[0], row[1], tuple(row[2]), row[3]) for row in rows.fetchall()}


def class_graph(rows: dict[int, Row], up_to: int | None = None) -> nx.DiGraph:
    """Return the edges from classes to children of kept e-nodes, or of the oldest up to an id."""
    graph = nx.DiGraph()
    for row in rows.values():
        if not row.filtered and (up_to is None or row.id <= up_to):
            graph.add_edges_from((row.owner, child) for child in row.children)
    return graph


def assert_filtered_well(before: dict[int, Row], after: dict[int, Row]) -> None:
    """Fail if a cycle is left, or what was dropped closes none or is the oldest of its class."""
    assert nx.is_directed_acyclic_graph(class_graph(after))
    for row in after.values():
        was_filtered = before[row.id].filtered
        assert row.filtered >= was_filtered
        if row.filtered and not was_filtered:
            assert any(other.owner == row.owner and other.id < row.id for other in after.values())
            assert closes_cycle(row, class_graph(before, up_to=row.id)), row


def closes_cycle(row: Row, graph: nx.DiGraph) -> bool:
    """Whether a way leads from a child of an e-node back to its class."""
    return any(child in graph and nx.has_path(graph, child, row.owner) for child in row.children)


@settings(max_examples=18, deadline=None)
@given(graphs(), batches())
def test_against_networkx(graph: Graph, steps: list[Batch]) -> None:
    egraph = EGraph.create(graph)
    values = square_values(egraph)
    for batch in steps:
        unite(egraph, pairs_of(batch, values))
        before = rows_of(egraph)
        count = filter_cycles(egraph.database)
        after = rows_of(egraph)
        assert_filtered_well(before, after)
        assert filtered_by_search(egraph, before) == {r.id for r in after.values() if r.filtered}
        assert count == sum(row.filtered for row in after.values()) - sum(
            row.filtered for row in before.values()
        )
        if nx.is_directed_acyclic_graph(class_graph(before)):
            assert count == 0
    assert_invariants(egraph)
    egraph.close()


def filtered_by_search(egraph: EGraph, before: dict[int, Row]) -> set[int]:
    """Return what the search in Python leaves out of the same e-graph, instead of statements."""
    kept = [row for row in before.values() if not row.filtered]
    edges = [(row.id, row.owner, child, 1, 1) for row in kept for child in row.children]
    columns = np.array(edges, np.int32).reshape(-1, 5).T
    names = ("enode", "class", "child", "height", "child_height")
    broken = break_cycles(dict(zip(names, columns, strict=True)), lambda: None)
    return {*broken, *(row.id for row in before.values() if row.filtered)}


#: (class, classes below it) of a match, by their places among all, modulo their number.
Matched = tuple[int, list[int]]


@pytest.mark.parametrize("sources", [2, 3])
@settings(max_examples=12, deadline=None)
@given(
    graphs(10),
    batches(1),
    st.lists(st.tuples(*[matched() for _ in range(3)]), min_size=1, max_size=8),
)
def test_applications_that_close_a_cycle_against_networkx(
    sources: int, graph: Graph, steps: list[Batch], groups: list[tuple[Matched, ...]]
) -> None:
    egraph = EGraph.create(graph)
    for batch in steps:
        unite(egraph, pairs_of(batch, square_values(egraph)))
    filter_cycles(egraph.database)
    edges = class_graph(rows_of(egraph))
    assume(edges)  # else all is one class
    matches = [tuple(_match(edges, *match) for match in group[:sources]) for group in groups]
    ids = {match: index for index, match in enumerate(sorted({m for p in matches for m in p}))}
    roots, marks = ([f"{letter}{n} INTEGER" for n in range(sources)] for letter in ("root", "m"))
    columns = ", ".join(["id INTEGER", *roots, "b INTEGER[]", *marks])
    egraph.database.execute(f"CREATE TEMP TABLE application ({columns})")
    egraph.database.append(
        "application",
        [
            (
                number,
                *(root for root, _ in group),
                [variable for _, variables in group for variable in variables],
                *(ids[match] for match in group),
            )
            for number, group in enumerate(matches)
        ],
    )
    closing = {
        number
        for number, group in enumerate(matches)
        if any(
            nx.has_path(edges, v, other)
            for (_, variables), (other, _) in permutations(group, 2)
            for v in variables
            if v
        )
    }
    rejected = reject_cyclic_applications(egraph.database, LEAVES, "some rule", sources)
    assert rejected == len(closing)
    remaining_rows = egraph.database.execute("SELECT id FROM application")
    assert {row[0] for row in remaining_rows} == set(range(len(matches))) - closing
    egraph.close()


def _match(edges: nx.DiGraph, root: int, leaves: list[int]) -> tuple[int, tuple[int, ...]]:
    """Return a class that has some below it, and up to so many of these; 0 where there are fewer."""
    roots = sorted(class_id for class_id in edges if edges.out_degree(class_id))
    owner = roots[root % len(roots)]
    below = sorted(nx.descendants(edges, owner))
    variables = [below[leaf % len(below)] for leaf in leaves]
    return owner, (*variables, *[0] * (LEAVES - len(variables)))


def chain(length: int) -> Graph:
    nodes = [Node("tanh", (f"v{i}",), (f"v{i + 1}",)) for i in range(length)]
    return build_graph("chain", {"v0": f32(2, 2)}, {}, nodes, [f"v{length}"])


@pytest.mark.parametrize("label", [7, 20, 100_000])
def test_labels_are_lifted_as_far_up_as_they_break_others(label: int) -> None:
    egraph = EGraph.create(chain(20))
    egraph.connection.execute("UPDATE eclass SET height = id")
    egraph.connection.execute(f"UPDATE eclass SET height = {label} WHERE id = 3")
    assert filter_cycles(egraph.database) == 0
    heights = egraph.connection.execute("SELECT height FROM eclass ORDER BY id").fetchall()
    assert heights == [(1,), (2,)] + [(max(i, label + i - 3),) for i in range(3, len(heights) + 1)]


def test_nothing_is_filtered_without_cycles() -> None:
    egraph = EGraph.create(chain(5))
    assert filter_cycles(egraph.database) == 0
    assert not any(row.filtered for row in rows_of(egraph).values())


def test_a_value_that_equals_its_operand() -> None:
    egraph = EGraph.create(chain(3))
    unite(egraph, [(2, 3)])  # v1 = tanh(v1)
    assert filter_cycles(egraph.database) == 1
    assert [row.id for row in rows_of(egraph).values() if row.filtered] == [3]
    assert_invariants(egraph)


@pytest.mark.parametrize("most", [0, 2_000])
def test_of_a_long_cycle_the_youngest_goes(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By statements, and by a search."""
    monkeypatch.setattr(cycles, "MOST_BY_STATEMENTS", most)
    egraph = EGraph.create(chain(60))
    unite(egraph, [(2, 60)])
    assert filter_cycles(egraph.database) == 1
    assert [row.id for row in rows_of(egraph).values() if row.filtered] == [60]
    assert_invariants(egraph)


def test_without_a_cycle_labels_are_lifted() -> None:
    # x -> a -> b and y -> p -> q -> r -> s: the union of a and s puts b above a longer way
    nodes = [
        Node("tanh", ("x",), ("a",)), Node("tanh", ("a",), ("b",)),
        Node("relu", ("y",), ("p",)), Node("relu", ("p",), ("q",)), Node("relu", ("q",), ("r",)),
        Node("relu", ("r",), ("s",)), Node("add", ("b", "s"), ("z",)),
    ]  # fmt: skip
    inputs = dict.fromkeys(("x", "y"), f32(2, 2))
    egraph = EGraph.create(build_graph("ways", inputs, {}, nodes, ["z"]))
    unite(egraph, [(3, 8)])
    assert filter_cycles(egraph.database) == 0
    assert_invariants(egraph)


def test_one_lift_lifts_all_above_it() -> None:
    egraph = EGraph.create(chain(5))
    egraph.connection.execute("UPDATE eclass SET height = greatest(id - 1, 1)")  # 1, 1, 2, 3, 4, 5
    assert filter_cycles(egraph.database) == 0
    assert_invariants(egraph)


def test_filtered_enodes_do_not_hold_labels_up() -> None:
    egraph = EGraph.create(chain(4))
    egraph.connection.execute("UPDATE enode SET filtered = true WHERE id = 3")
    unite(egraph, [(3, 5)])  # tanh(v3) is now v2; the e-node tanh(v1) of v2 is dropped already
    assert filter_cycles(egraph.database) == 1
    assert {row.id for row in rows_of(egraph).values() if row.filtered} == {3, 5}
