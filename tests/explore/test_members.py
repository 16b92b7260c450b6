"""Subgraphs that are parts of one universe: what they have, why, and what e-graphs of their own have."""

from __future__ import annotations

from typing import Any

import pytest

from bench.models import MODELS
from relational_tensat.cost import load_profile
from relational_tensat.egraph import EGraph
from relational_tensat.egraph.database import Interrupted
from relational_tensat.explore.compile.prefixes import LiveSkeleton, live_skeletons
from relational_tensat.explore.match import matcher
from relational_tensat.explore.members import show_universe
from relational_tensat.explore.step import StepBudget, step
from relational_tensat.explore.subgraph import Subgraph, begin_subgraph
from relational_tensat.extract import extract
from relational_tensat.extract.problem import topological_order
from relational_tensat.extract.tables import choose, chosen_graph, extraction_problem
from relational_tensat.rules.library import taso_rules
from relational_tensat.tensor import Graph, Node, build_graph
from tests.egraph.invariants import assert_invariants
from tests.explore.canonical import same
from tests.explore.example_rules import example_rules
from tests.explore.graphs import mixed, separate_sums, sum_of
from tests.explore.own_egraphs import Key, assert_explained, extras, keys_of, own_subgraph
from tests.explore.subgraph_invariants import assert_subgraph_invariants, members_of
from tests.explore.universes import BUDGET, begin, grow, original, turns, universe_of
from tests.graphs import f32
from tests.tiers import nightly


def chosen_in(subgraph: Subgraph) -> tuple[list[int], Graph]:
    """Return the cheapest graph of what is shown: its e-nodes, operands first, and itself."""
    subgraph.flush()
    table = extraction_problem(subgraph.egraph, load_profile("t4"))
    choice = extract(table.problem).choice
    choose(subgraph.egraph, table, choice)
    order = topological_order(table.problem, choice)
    return table.enodes[choice[order]].tolist(), chosen_graph(subgraph.egraph)


@pytest.mark.parametrize("model", ["mixed", "bert", nightly("nasrnn")])
def test_the_first_subgraph_is_the_e_graph_that_there_is_without_subgraphs(model: str) -> None:
    graph, rules = (
        (mixed(), example_rules()) if model == "mixed" else (MODELS[model](), taso_rules())
    )
    budget = StepBudget(2_000)
    plain = begin_subgraph(EGraph.create(graph), rules)
    subgraph = universe_of(graph, rules)
    begin(subgraph, 1, original(subgraph.egraph))
    for number, rules_of_step in enumerate(turns(plain, 4)):
        expected = step(plain, rules_of_step, budget)
        delta = step(subgraph, rules_of_step, budget)
        assert (delta.matches, delta.rejected, delta.built, delta.unions, delta.filtered) == (
            expected.matches, expected.rejected, expected.built, expected.unions, expected.filtered,
        ), number  # fmt: skip
        plain.flush()
        subgraph.flush()
        assert same(plain.egraph, subgraph.egraph)
        assert_subgraph_invariants(subgraph.egraph, 1)
    assert_invariants(plain.egraph)
    assert subgraph.egraph.counters() == plain.egraph.counters()
    assert subgraph.e_nodes == plain.e_nodes


@pytest.mark.parametrize(
    ("graph", "rules", "steps"),
    [
        (mixed(), ("negate", "swap", "join-products", "join-sums", "twice", "same"), 6),
        (sum_of(4), ("swap", "regroup"), 5),
        (separate_sums(3), ("join-sums", "swap"), 4),
    ],
)
def test_a_subgraph_has_what_an_e_graph_of_its_own_has(
    graph: Graph, rules: tuple[str, ...], steps: int
) -> None:
    subgraph = universe_of(graph, example_rules(*rules) if rules else taso_rules())
    egraph = subgraph.egraph
    begin(subgraph, 1, original(egraph))
    grow(subgraph, 1, steps)
    seed, chosen = chosen_in(subgraph)
    for number, enodes, graph_of_seed in ((2, seed, chosen), (3, original(egraph), graph)):
        begin(subgraph, number, enodes)
        assert_subgraph_invariants(egraph, number)
        grow(subgraph, number, steps)
        own = own_subgraph(graph_of_seed, subgraph)
        for rules_of_step in turns(own, steps):
            step(own, rules_of_step, BUDGET)
        own.flush()
        keys, owners = keys_of(own.egraph, egraph)
        missing = keys - set(member_keys(egraph, number))
        assert missing == set()
        extra = extras(egraph, number, keys)
        assert len(extra) == subgraph.e_nodes - len(keys)
        assert_explained(egraph, number, extra, owners)


def test_what_equalities_of_other_subgraphs_allow_earlier_is_explained() -> None:
    nodes = [
        Node("relu", ("x",), ("a",)),
        Node("relu", ("a",), ("b",)),
        Node("sub", ("b", "a"), ("c",)),
        Node("add", ("c", "x"), ("y",)),
    ]
    graph = build_graph("difference", {"x": f32(2, 2)}, {}, nodes, ["y"])
    subgraph = universe_of(graph, example_rules("twice", "zero", "swap"))
    egraph = subgraph.egraph
    begin(subgraph, 1, original(egraph))
    grow(subgraph, 1, 2)
    begin(subgraph, 2, original(egraph))
    own = own_subgraph(graph, subgraph)
    for one in (subgraph, own):
        step(one, [r.id for r in one.rules.rules if r.rule.name == "zero"], BUDGET)
        one.flush()
    assert_subgraph_invariants(egraph, 2)
    keys, owners = keys_of(own.egraph, egraph)
    extra = extras(egraph, 2, keys)
    assert len(extra) == 1  # b is a in the first subgraph, so that b - a is 0
    assert_explained(egraph, 2, extra, owners)
    with pytest.raises(AssertionError):
        assert_explained(egraph, 2, [(extra[0][0], 0)], owners)


def test_subgraphs_of_a_model_do_what_e_graphs_of_their_own_do() -> None:
    """By figures for what was chosen: by the order of ids, a symmetric rule builds [b, c] or [c, b]."""
    graph, steps = MODELS["nasrnn"](), 3
    subgraph = universe_of(graph, taso_rules())
    egraph = subgraph.egraph
    begin(subgraph, 1, original(egraph))
    grow(subgraph, 1, steps)
    seed, chosen = chosen_in(subgraph)
    for number, enodes, graph_of_seed in ((2, seed, chosen), (3, original(egraph), graph)):
        begin(subgraph, number, enodes)
        own = own_subgraph(graph_of_seed, subgraph)
        for rules_of_step in turns(own, steps):
            delta, expected = (step(w, rules_of_step, BUDGET) for w in (subgraph, own))
            assert delta.matches == expected.matches
            assert (delta.rejected, delta.filtered) == (expected.rejected, expected.filtered)
            assert delta.entered == expected.built
            subgraph.flush()
            assert_subgraph_invariants(egraph, number)
        own.flush()
        assert subgraph.e_nodes == own.e_nodes
    keys, _ = keys_of(own.egraph, egraph)
    assert keys == set(member_keys(egraph, 3))


def test_a_subgraph_is_matched_by_the_patterns_that_it_can_have_not_by_those_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As many branches of a search's query as in an e-graph of its own."""
    graph = MODELS["nasrnn"]()
    subgraph = universe_of(graph, taso_rules())
    egraph = subgraph.egraph
    begin(subgraph, 1, original(egraph))
    grow(subgraph, 1, 3)
    seed, chosen = chosen_in(subgraph)
    begin(subgraph, 2, seed)
    own = own_subgraph(chosen, subgraph)
    searched: list[int] = []

    def counted(*args: Any) -> list[LiveSkeleton]:
        live = live_skeletons(*args)
        searched.append(sum(len(skeleton.rows) for skeleton in live))
        return live

    monkeypatch.setattr(matcher, "live_skeletons", counted)
    for rules in turns(own, 3):
        step(subgraph, rules, BUDGET)
        in_subgraph = searched.copy()
        searched.clear()
        step(own, rules, BUDGET)
        assert in_subgraph == searched
        searched.clear()


def member_keys(egraph: EGraph, number: int) -> list[Key]:
    """Return the e-nodes of a subgraph."""
    rows = egraph.connection.execute(
        "SELECT e.signature, [e.c0, e.c1, e.c2, e.c3, e.c4]\n"
        "FROM subgraph_node AS m JOIN enode AS e ON e.id = m.enode WHERE m.subgraph = $subgraph",
        {"subgraph": number},
    ).fetchall()
    return [(row[0], tuple(row[1])) for row in rows]


def test_the_limits_hold_of_the_subgraph_and_of_the_universe() -> None:
    subgraph = universe_of(sum_of(5), example_rules("swap", "regroup"))
    egraph = subgraph.egraph
    start = original(egraph)
    begin(subgraph, 1, start)
    delta = step(subgraph, subgraph.rules.all_rules, StepBudget(len(start) + 2))
    assert not delta.single_complete
    assert delta.entered == delta.built == 2
    assert subgraph.e_nodes == len(start) + 2
    begin(subgraph, 2, start, universe_limit=egraph.e_nodes + 1)
    delta = step(subgraph, subgraph.rules.all_rules, BUDGET)
    assert not delta.single_complete
    assert (delta.built, delta.entered) == (1, 3)  # the two of the first subgraph, and a new one
    subgraph.flush()
    assert_subgraph_invariants(egraph, 2)


def test_a_step_that_is_undone_leaves_the_members_as_they_were() -> None:
    subgraph = universe_of(separate_sums(4), example_rules("join-sums", "swap"))
    begin(subgraph, 1, original(subgraph.egraph))
    size, before = subgraph.e_nodes, members_of(subgraph.egraph, 1)
    subgraph.egraph.database.interrupt()
    with pytest.raises(Interrupted):
        step(subgraph, subgraph.rules.all_rules, BUDGET)
    subgraph.egraph.database.resume()
    assert (subgraph.e_nodes, members_of(subgraph.egraph, 1)) == (size, before)
    step(subgraph, subgraph.rules.all_rules, BUDGET)
    subgraph.flush()
    assert subgraph.e_nodes > size
    assert_subgraph_invariants(subgraph.egraph, 1)


def test_all_of_the_universe_can_be_extracted_from() -> None:
    subgraph = universe_of(mixed(), example_rules())
    begin(subgraph, 1, original(subgraph.egraph))
    grow(subgraph, 1, 3, StepBudget(60))
    seed, _ = chosen_in(subgraph)
    begin(subgraph, 2, seed)
    grow(subgraph, 2, 3, StepBudget(60))
    show_universe(subgraph.egraph)
    subgraph.flush()
    assert_invariants(subgraph.egraph, "none")
    table = extraction_problem(subgraph.egraph, load_profile("t4"))
    assert len(table.enodes) <= subgraph.egraph.e_nodes
    assert extract(table.problem).optimal
