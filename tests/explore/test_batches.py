"""Applications that may build more than fits are carried out in batches, with the same result."""

from __future__ import annotations

import pytest

from relational_tensat.egraph import EGraph
from relational_tensat.explore import Exploration, ExplorationOptions, explore
from relational_tensat.explore import step as step_module
from relational_tensat.explore.apply import application
from relational_tensat.explore.apply.application import FEWEST, OVERBUILD
from relational_tensat.explore.apply.targets import Bounds
from tests.egraph.invariants import assert_invariants
from tests.explore.canonical import same
from tests.explore.example_rules import example_rules
from tests.explore.graphs import separate_sums


@pytest.mark.parametrize(
    ("applications", "e_nodes", "total_nodes"),
    [
        (10, 0, 30),
        (100_000, 900, 300_000),
        (2_000_000, 240_000, 8_000_000),
        (2_000_000, 300_000, 8_000_000),
        (7 * FEWEST, 0, 10**9),
    ],
)
def test_batches_are_all_applications_and_none_builds_too_much(
    applications: int, e_nodes: int, total_nodes: int
) -> None:
    bounds = Bounds(300_000, total_nodes, steps=4, sources=1, bound=3)
    sizes = application._batch_sizes(applications, e_nodes, bounds)
    assert sum(sizes) == applications
    assert min(sizes) > 0
    most = max(OVERBUILD * bounds.node_limit, total_nodes / applications)
    assert all((size - 1) * total_nodes / applications < most for size in sizes)


def test_what_may_fill_the_node_budget_comes_first() -> None:
    """2,000,000 targets of four nodes, 60,000 e-nodes left: a first batch of four times that."""
    sizes = application._batch_sizes(
        2_000_000, 240_000, Bounds(300_000, 8_000_000, steps=4, sources=1, bound=3)
    )
    assert sizes[:3] == [60_000, 120_000, 240_000]


def explored(limit: int) -> tuple[EGraph, Exploration]:
    egraph = EGraph.create(separate_sums(6))
    return egraph, explore(
        egraph, example_rules("join-sums", "swap"), ExplorationOptions(20, node_limit=limit)
    )


@pytest.mark.parametrize("limit", [50, 60, 80, 100])
def test_the_e_graph_is_the_same_in_batches(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, as_whole = explored(limit)
    monkeypatch.setattr(application, "FEWEST", 1)
    monkeypatch.setattr(application, "OVERBUILD", 1)
    parts, as_parts = explored(limit)
    assert ("apply", "apply/batch") in parts.database.stopwatch.spent().statements
    assert as_parts.stop_reason == as_whole.stop_reason
    assert same(whole, parts)
    assert_invariants(parts)


def explored_in_two(limit: int, monkeypatch: pytest.MonkeyPatch) -> tuple[EGraph, Exploration]:
    """Explore with few pairs asked for at first."""
    monkeypatch.setattr(step_module, "FEWEST", 1)
    monkeypatch.setattr(step_module, "_LEAST_BUILT", 100_000)
    return explored(limit)


def test_the_e_graph_is_the_same_if_few_pairs_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 15 pairs some are asked for, and then, since some of the node budget is left, the others."""
    whole, as_whole = explored(100_000)
    parts, as_parts = explored_in_two(100_000, monkeypatch)
    assert as_parts.statements > as_whole.statements
    assert as_parts.stop_reason == as_whole.stop_reason == "saturated"
    assert [entry.matches for entry in as_parts.log] == [entry.matches for entry in as_whole.log]
    assert {rule: stats.applied for rule, stats in as_parts.rules.items()} == {
        rule: stats.applied for rule, stats in as_whole.rules.items()
    }
    assert same(whole, parts)
    assert_invariants(parts)


def test_what_exceeds_the_node_budget_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    _, as_whole = explored(60)
    parts, as_parts = explored_in_two(60, monkeypatch)
    assert as_parts.log[0].matches < as_whole.log[0].matches
    assert as_parts.stop_reason == as_whole.stop_reason == "nodes"
    assert parts.counts()[0] <= 60
    assert_invariants(parts)
