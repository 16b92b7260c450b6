from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from itertools import permutations

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from relational_tensat.egraph import EGraph, cycles
from relational_tensat.egraph.cycles import (
    break_cycles,
    cyclic_core,
    filter_cycles,
    reject_cyclic_applications,
)
from relational_tensat.egraph.database import Interrupted
from relational_tensat.tensor import Graph, Node, build_graph
from tests.egraph.invariants import assert_invariants
from tests.egraph.random_graphs import Batch, batches, graphs, pairs_of, square_values, unite
from tests.graphs import f32

Edge = tuple[int, int, int]  # e-node, class, child


def never() -> None:
    """Let the search continue."""


def random_edges(seed: int) -> tuple[list[Edge], dict[int, int]]:
    """Return edges among up to 12 classes, e-nodes with up to three children, and a label per class."""
    draw = random.Random(seed)
    classes = draw.randint(1, 12)
    edges = [
        (enode, owner, draw.randint(1, classes))
        for enode in range(1, draw.randint(1, 25))
        for owner in [draw.randint(1, classes)]
        for _ in range(draw.randint(1, 3))
    ]
    return edges, {class_id: draw.randint(1, classes) for class_id in range(1, classes + 1)}


def columns(edges: list[Edge], height: dict[int, int]) -> dict[str, np.ndarray]:
    names = ("enode", "class", "child", "height", "child_height")
    rows = [(e, c, d, height[c], height[d]) for e, c, d in edges]
    array = np.array(rows, dtype=np.int32).reshape(-1, 5)
    return {name: array[:, place] for place, name in enumerate(names)}


def breakers_by_age(edges: list[Edge]) -> list[int]:
    """Keep one e-node after the other, unless it closes a cycle."""
    acyclic, breakers = nx.DiGraph(), []
    for enode, group in itertools.groupby(edges, key=lambda edge: edge[0]):
        with_it = acyclic.copy()
        with_it.add_edges_from((c, d) for _, c, d in group)
        if nx.is_directed_acyclic_graph(with_it):
            acyclic = with_it
        else:
            breakers.append(enode)
    return breakers


def test_an_enode_goes_if_it_closes_a_cycle_with_older_ones() -> None:
    for seed in range(300):
        edges, height = random_edges(seed)
        expected = breakers_by_age(edges)
        random.Random(seed).shuffle(edges)  # what is filtered depends on ages alone
        assert break_cycles(columns(edges, height), never) == expected, seed


def test_the_oldest_enode_of_each_class_stays() -> None:
    """Where an operand is older than what has it as an operand."""
    for seed in range(100):
        draw = random.Random(seed)
        merged = [draw.randint(0, 9) for _ in range(40)]  # an e-node's class, unions carried out
        edges = [
            (enode, merged[enode], merged[draw.randrange(enode)])
            for enode in range(1, 40)
            for _ in range(2)
        ]
        oldest = {merged.index(class_id) for class_id in merged}
        assert oldest.isdisjoint(break_cycles(columns(edges, dict.fromkeys(range(10), 1)), never))


def test_the_core_has_all_cycles_and_no_ends() -> None:
    for seed in range(100):
        edges, height = random_edges(seed)
        arrays = columns(edges, height)
        suspect = arrays["child_height"] >= arrays["height"]
        places = set(cyclic_core(arrays["class"], arrays["child"], suspect, never).tolist())
        graph = nx.DiGraph((c, d) for _, c, d in edges)
        of = {c: n for n, part in enumerate(nx.strongly_connected_components(graph)) for c in part}
        assert places >= {place for place, (_, c, d) in enumerate(edges) if of[c] == of[d]}, seed
        core = nx.DiGraph(edges[place][1:] for place in places)
        assert all(core.out_degree(node) and core.in_degree(node) for node in core), seed


def test_a_search_can_be_ended() -> None:
    def stop() -> None:
        raise Interrupted

    ring = [(enode, enode, enode % 5 + 1) for enode in range(1, 6)]
    with pytest.raises(Interrupted):
        break_cycles(columns(ring, dict.fromkeys(range(1, 6), 1)), stop)


def test_one_long_search_can_be_ended() -> None:
    """In large components one search takes seconds, so it checks all the time."""
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1

    size = 20_000
    ring = [(enode, enode, enode % size + 1) for enode in range(1, size + 1)]
    height = {class_id: size - class_id for class_id in range(1, size + 1)}
    break_cycles(columns(ring, height), look)  # the ring has one way back, round all of it
    assert looks >= size + size // 2  # one for each e-node, and each step from both ends of the way


def test_a_ring_of_many_classes() -> None:
    """Without recursion: deeper than Python's stack."""
    size = 20_000
    ring = [(enode, enode, enode % size + 1) for enode in range(1, size + 1)]
    height = {class_id: size - class_id for class_id in range(1, size + 1)}
    assert break_cycles(columns(ring, height), never) == [size]


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
