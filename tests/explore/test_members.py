"""Worlds that are parts of one universe: what they have, why, and what e-graphs of their own have."""

from __future__ import annotations

from typing import Any

import pytest

from relational_tensat.cost import load_profile
from relational_tensat.egraph import EGraph
from relational_tensat.egraph.database import Interrupted
from relational_tensat.explore.compile.prefixes import LiveSkeleton, live_skeletons
from relational_tensat.explore.match import matcher
from relational_tensat.explore.members import show_universe
from relational_tensat.explore.step import StepBudget, step
from relational_tensat.explore.world import World, begin_world
from relational_tensat.extract import extract
from relational_tensat.extract.problem import topological_order
from relational_tensat.extract.tables import choose, chosen_graph, extraction_problem
from relational_tensat.models import MODELS
from relational_tensat.rules.library import taso_rules
from relational_tensat.tensor import Graph, Node, build_graph
from tests.egraph.invariants import assert_invariants
from tests.explore.canonical import same
from tests.explore.example_rules import example_rules
from tests.explore.graphs import mixed, separate_sums, sum_of
from tests.explore.own_egraphs import Key, assert_explained, extras, keys_of
from tests.explore.universes import BUDGET, begin, grow, original, turns, universe_of
from tests.explore.world_invariants import assert_world_invariants, members_of
from tests.graphs import f32
from tests.tiers import nightly


def chosen_in(world: World) -> tuple[list[int], Graph]:
    """Return the cheapest graph of what is shown: its e-nodes, operands first, and itself."""
    world.flush()
    table = extraction_problem(world.egraph, load_profile("t4"))
    choice = extract(table.problem).choice
    choose(world.egraph, table, choice)
    order = topological_order(table.problem, choice)
    return table.enodes[choice[order]].tolist(), chosen_graph(world.egraph)


@pytest.mark.parametrize("model", ["mixed", "bert", nightly("nasrnn")])
def test_the_first_world_is_the_e_graph_that_there_is_without_worlds(model: str) -> None:
    graph, rules = (
        (mixed(), example_rules()) if model == "mixed" else (MODELS[model](), taso_rules())
    )
    budget = StepBudget(2_000)
    plain = begin_world(EGraph.create(graph), rules)
    world = universe_of(graph, rules)
    begin(world, 1, original(world.egraph))
    for number, rules_of_step in enumerate(turns(plain, 4)):
        expected = step(plain, rules_of_step, budget)
        delta = step(world, rules_of_step, budget)
        assert (delta.matches, delta.rejected, delta.built, delta.unions, delta.filtered) == (
            expected.matches, expected.rejected, expected.built, expected.unions, expected.filtered,
        ), number  # fmt: skip
        plain.flush()
        world.flush()
        assert same(plain.egraph, world.egraph)
        assert_world_invariants(world.egraph, 1)
    assert_invariants(plain.egraph)
    assert world.egraph.counters() == plain.egraph.counters()
    assert world.e_nodes == plain.e_nodes


@pytest.mark.parametrize(
    ("graph", "rules", "steps"),
    [
        (mixed(), ("negate", "swap", "join-products", "join-sums", "twice", "same"), 6),
        (sum_of(4), ("swap", "regroup"), 5),
        (separate_sums(3), ("join-sums", "swap"), 4),
    ],
)
def test_a_world_has_what_an_e_graph_of_its_own_has(
    graph: Graph, rules: tuple[str, ...], steps: int
) -> None:
    world = universe_of(graph, example_rules(*rules) if rules else taso_rules())
    egraph = world.egraph
    begin(world, 1, original(egraph))
    grow(world, 1, steps)
    seed, chosen = chosen_in(world)
    for number, enodes, graph_of_seed in ((2, seed, chosen), (3, original(egraph), graph)):
        begin(world, number, enodes)
        assert_world_invariants(egraph, number)
        grow(world, number, steps)
        own = begin_world(egraph.beside(graph_of_seed, f"own{number}"), world.rules)
        for rules_of_step in turns(own, steps):
            step(own, rules_of_step, BUDGET)
        own.flush()
        keys, owners = keys_of(own.egraph, egraph)
        missing = keys - set(member_keys(egraph, number))
        assert missing == set()
        extra = extras(egraph, number, keys)
        assert len(extra) == world.e_nodes - len(keys)
        assert_explained(egraph, number, extra, owners)


def test_what_equalities_of_other_worlds_allow_earlier_is_explained() -> None:
    nodes = [
        Node("relu", ("x",), ("a",)),
        Node("relu", ("a",), ("b",)),
        Node("sub", ("b", "a"), ("c",)),
        Node("add", ("c", "x"), ("y",)),
    ]
    graph = build_graph("difference", {"x": f32(2, 2)}, {}, nodes, ["y"])
    world = universe_of(graph, example_rules("twice", "zero", "swap"))
    egraph = world.egraph
    begin(world, 1, original(egraph))
    grow(world, 1, 2)
    begin(world, 2, original(egraph))
    own = begin_world(egraph.beside(graph, "own"), world.rules)
    for one in (world, own):
        step(one, one.rules.named("zero"), BUDGET)
        one.flush()
    assert_world_invariants(egraph, 2)
    keys, owners = keys_of(own.egraph, egraph)
    extra = extras(egraph, 2, keys)
    assert len(extra) == 1  # b is a in the first world, so that b - a is 0
    assert_explained(egraph, 2, extra, owners)
    with pytest.raises(AssertionError):
        assert_explained(egraph, 2, [(extra[0][0], 0)], owners)


def test_worlds_of_a_model_do_what_e_graphs_of_their_own_do() -> None:
    """By figures for what was chosen: by the order of ids, a symmetric rule builds [b, c] or [c, b]."""
    graph, steps = MODELS["nasrnn"](), 3
    world = universe_of(graph, taso_rules())
    egraph = world.egraph
    begin(world, 1, original(egraph))
    grow(world, 1, steps)
    seed, chosen = chosen_in(world)
    for number, enodes, graph_of_seed in ((2, seed, chosen), (3, original(egraph), graph)):
        begin(world, number, enodes)
        own = begin_world(egraph.beside(graph_of_seed, f"own{number}"), world.rules)
        for rules_of_step in turns(own, steps):
            delta, expected = (step(w, rules_of_step, BUDGET) for w in (world, own))
            assert delta.matches == expected.matches
            assert (delta.rejected, delta.filtered) == (expected.rejected, expected.filtered)
            assert delta.entered == expected.built
            world.flush()
            assert_world_invariants(egraph, number)
        own.flush()
        assert world.e_nodes == own.e_nodes
    keys, _ = keys_of(own.egraph, egraph)
    assert keys == set(member_keys(egraph, 3))


def test_a_world_is_matched_by_the_patterns_that_it_can_have_not_by_those_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As many branches of a search's query as in an e-graph of its own."""
    graph = MODELS["nasrnn"]()
    world = universe_of(graph, taso_rules())
    egraph = world.egraph
    begin(world, 1, original(egraph))
    grow(world, 1, 3)
    seed, chosen = chosen_in(world)
    begin(world, 2, seed)
    own = begin_world(egraph.beside(chosen, "own"), world.rules)
    searched: list[int] = []

    def counted(*args: Any) -> list[LiveSkeleton]:
        live = live_skeletons(*args)
        searched.append(sum(len(skeleton.rows) for skeleton in live))
        return live

    monkeypatch.setattr(matcher, "live_skeletons", counted)
    for rules in turns(own, 3):
        step(world, rules, BUDGET)
        in_world = searched.copy()
        searched.clear()
        step(own, rules, BUDGET)
        assert in_world == searched
        searched.clear()


def member_keys(egraph: EGraph, number: int) -> list[Key]:
    """Return the e-nodes of a world."""
    rows = egraph.connection.execute(
        "SELECT e.signature, [e.c0, e.c1, e.c2, e.c3, e.c4]\n"
        "FROM world_node AS m JOIN enode AS e ON e.id = m.enode WHERE m.world = $world",
        {"world": number},
    ).fetchall()
    return [(row[0], tuple(row[1])) for row in rows]


def test_the_limits_hold_of_the_world_and_of_the_universe() -> None:
    world = universe_of(sum_of(5), example_rules("swap", "regroup"))
    egraph = world.egraph
    start = original(egraph)
    begin(world, 1, start)
    delta = step(world, world.rules.all_rules, StepBudget(len(start) + 2))
    assert not delta.single_complete
    assert delta.entered == delta.built == 2
    assert world.e_nodes == len(start) + 2
    begin(world, 2, start, universe_limit=egraph.e_nodes + 1)
    delta = step(world, world.rules.all_rules, BUDGET)
    assert not delta.single_complete
    assert (delta.built, delta.entered) == (1, 3)  # the two of the first world, and a new one
    world.flush()
    assert_world_invariants(egraph, 2)


def test_a_step_that_is_undone_leaves_the_members_as_they_were() -> None:
    world = universe_of(separate_sums(4), example_rules("join-sums", "swap"))
    begin(world, 1, original(world.egraph))
    size, before = world.e_nodes, members_of(world.egraph, 1)
    world.egraph.database.interrupt()
    with pytest.raises(Interrupted):
        step(world, world.rules.all_rules, BUDGET)
    world.egraph.database.resume()
    assert (world.e_nodes, members_of(world.egraph, 1)) == (size, before)
    step(world, world.rules.all_rules, BUDGET)
    world.flush()
    assert world.e_nodes > size
    assert_world_invariants(world.egraph, 1)


def test_all_of_the_universe_can_be_extracted_from() -> None:
    world = universe_of(mixed(), example_rules())
    begin(world, 1, original(world.egraph))
    grow(world, 1, 3, StepBudget(60))
    seed, _ = chosen_in(world)
    begin(world, 2, seed)
    grow(world, 2, 3, StepBudget(60))
    show_universe(world.egraph)
    world.flush()
    assert_invariants(world.egraph, "none")
    table = extraction_problem(world.egraph, load_profile("t4"))
    assert len(table.enodes) <= world.egraph.e_nodes
    assert extract(table.problem).optimal
