"""Ways to explore that must agree, or differ as documented: semi-naive matching, cycle filters."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings

from relational_tensat.egraph import EGraph
from relational_tensat.egraph.cycles import filter_cycles
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.explore.subgraph import Subgraph
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph
from tests.egraph.extraction import cheapest_graph
from tests.egraph.invariants import assert_invariants
from tests.egraph.random_graphs import Batch, batches, graphs, pairs_of, square_values, unite
from tests.explore.canonical import canonical, same
from tests.explore.example_rules import example_rules
from tests.explore.graphs import mixed, product_of_its_factor, separate_sums, sum_of

REWRITES = example_rules("swap", "regroup", "twice", "join-products", "join-sums")


def matching_all() -> AbstractContextManager[object]:
    """Match everything again in every iteration, meanwhile."""
    return mock.patch.object(Subgraph, "since", lambda *_: 0)


def explored(
    graph: Graph,
    rules: Sequence[Rule],
    limits: ExplorationOptions,
    steps: Sequence[Batch] = (),
    **modes: Any,
) -> EGraph:
    """Return the e-graph of a graph after some unions and an exploration, sound and in its limits."""
    egraph = EGraph.create(graph)
    values = square_values(egraph)
    for batch in steps:
        unite(egraph, pairs_of(batch, values), iteration=0)
    options = replace(limits, **modes)
    if options.cycle_filter != "none":
        filter_cycles(egraph.database)
    exploration = explore(egraph, rules, options)
    assert exploration.stop_reason != "nodes"
    assert_invariants(egraph, options.cycle_filter)
    return egraph


@settings(max_examples=5, deadline=None)
@given(graphs(7), batches(1))
def test_semi_naive_matching_changes_nothing_without_cycle_filter(
    graph: Graph, steps: list[Batch]
) -> None:
    limits = ExplorationOptions(2, 2, multi_schedule="first", node_limit=10**5)
    new = explored(graph, REWRITES, limits, steps, cycle_filter="none")
    with matching_all():
        all_ = explored(graph, REWRITES, limits, steps, cycle_filter="none")
    assert same(new, all_)


@pytest.mark.parametrize("cycle_filter", ["efficient", "none"])
@pytest.mark.parametrize("graph", [mixed(), sum_of(5)], ids=lambda graph: graph.name)
def test_semi_naive_matching_changes_nothing(graph: Graph, cycle_filter: str) -> None:
    limits = ExplorationOptions(4, node_limit=5000)
    rules = example_rules("swap", "regroup", "negate", "distribute", "same", "join-products")
    new = explored(graph, rules, limits, cycle_filter=cycle_filter)
    with matching_all():
        all_ = explored(graph, rules, limits, cycle_filter=cycle_filter)
    assert same(new, all_)


def test_semi_naive_matching_works_on_new_matches_only() -> None:
    rules = example_rules("swap", "regroup")
    new = explore(EGraph.create(sum_of(6)), rules)
    with matching_all():
        all_ = explore(EGraph.create(sum_of(6)), rules)
    assert [entry.e_nodes for entry in new.log] == [entry.e_nodes for entry in all_.log]
    assert new.log[0].matches == all_.log[0].matches
    assert new.log[-1].matches < 0.5 * all_.log[-1].matches


def test_filters_agree_where_nothing_is_cyclic() -> None:
    graph, rules = separate_sums(5), example_rules("swap", "join-sums")
    egraphs = [
        explored(graph, rules, ExplorationOptions(1, node_limit=2000), cycle_filter=name)
        for name in ("efficient", "vanilla", "none")
    ]
    assert canonical(egraphs[0]) == canonical(egraphs[1]) == canonical(egraphs[2])
    assert egraphs[0].e_nodes > 80


@settings(max_examples=5, deadline=None)
@given(graphs(8), batches(1))
def test_filters_agree_on_single_pattern_rules(graph: Graph, steps: list[Batch]) -> None:
    rules, limits = example_rules("swap", "twice"), ExplorationOptions(2)
    efficient = explored(graph, rules, limits, steps, cycle_filter="efficient")
    vanilla = explored(graph, rules, limits, steps, cycle_filter="vanilla")
    assert same(efficient, vanilla)


@settings(max_examples=5, deadline=None)
@given(graphs(8), batches(1))
def test_filters_apply_less_the_stricter_they_are(graph: Graph, steps: list[Batch]) -> None:
    """What one check of the e-graph rejects, a check before each application rejects as well."""
    rules, limits = example_rules("join-products", "join-sums"), ExplorationOptions(1)
    born = {}
    for name in ("vanilla", "efficient", "none"):
        born[name] = explored(graph, rules, limits, steps, cycle_filter=name).next_id
    assert born["vanilla"] <= born["efficient"] <= born["none"]


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_what_would_be_computed_from_itself(steps: int) -> None:
    graph, rules = product_of_its_factor(steps), example_rules("join-products")
    size = len(graph.nodes) + 2
    for name in ("efficient", "vanilla"):
        egraph = explored(graph, rules, ExplorationOptions(1), cycle_filter=name)
        assert egraph.counts() == (size, size)  # rejected before anything is built
    egraph = explored(graph, rules, ExplorationOptions(1), cycle_filter="none")
    assert egraph.counts()[0] > size
    assert egraph.connection.execute("SELECT bool_or(filtered) FROM enode").fetchall() == [(False,)]
    assert cheapest_graph(egraph).count_ops() == graph.count_ops()


def test_single_pattern_rules_are_filtered_after_the_fact() -> None:
    graph, rules = mixed(), example_rules("twice", "grow", "negate")
    efficient = explored(graph, rules, ExplorationOptions(2))
    free = explored(graph, rules, ExplorationOptions(2), cycle_filter="none")
    filtered = "SELECT count(*) FROM enode WHERE filtered"
    assert efficient.connection.execute(filtered).fetchall()[0][0] > 0
    assert free.connection.execute(filtered).fetchall()[0][0] == 0
    assert free.e_nodes >= efficient.e_nodes
