"""Where the node budget is scarce, multi-pattern rules leave more of it to the others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from relational_tensat.egraph import EGraph
from relational_tensat.explore import Exploration, ExplorationOptions, Observer, explore
from relational_tensat.explore import step as step_module
from relational_tensat.explore.strategies import policy
from relational_tensat.explore.strategies.policy import multi_budget, scarce_budget
from relational_tensat.explore.strategies.saturation import Saturation
from relational_tensat.rules.model import Rule
from tests.egraph.invariants import assert_invariants
from tests.explore.canonical import same
from tests.explore.example_rules import example_rules
from tests.explore.graphs import separate_sums

#: The first makes up to 90 e-nodes of 20; the second commutes the sums among them.
JOIN_AND_SWAP = example_rules("join-sums", "swap")


def explored(
    limit: int, rules: Sequence[Rule] = JOIN_AND_SWAP, *, multi_iterations: int = 1
) -> tuple[EGraph, Exploration, bool]:
    """Explore; return whether the node budget was scarce, too."""
    egraph = EGraph.create(separate_sums(6))
    options = ExplorationOptions(20, multi_iterations, node_limit=limit)
    saturation = Saturation(egraph, rules, options, Observer())
    with saturation.watching() as guard:
        reason = saturation.grow(guard)
    return egraph, saturation.finish(reason), saturation._state.scarce


def test_the_iteration_that_starves_single_pattern_rules_is_done_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limit = 60
    egraph, exploration, is_scarce = explored(limit)
    assert is_scarce
    assert_invariants(egraph)
    monkeypatch.setattr(policy, "multi_budget", scarce_budget)
    other, repeated, _ = explored(limit)
    assert same(egraph, other)
    assert [entry.e_nodes for entry in exploration.log] == [entry.e_nodes for entry in repeated.log]
    assert [entry.matches for entry in exploration.log] == [entry.matches for entry in repeated.log]


def test_an_interrupt_is_noticed_while_an_iteration_is_undone_to_be_done_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    egraph = EGraph.create(separate_sums(6))

    class Starved(step_module.Starved):
        def __init__(self) -> None:
            egraph.database.interrupt()

    monkeypatch.setattr(step_module, "Starved", Starved)
    assert (
        explore(egraph, JOIN_AND_SWAP, ExplorationOptions(20, node_limit=60)).stop_reason
        == "interrupted"
    )
    assert_invariants(egraph)


@pytest.mark.parametrize("limit", [300, 10_000])
def test_nothing_is_done_again_where_all_fits(limit: int) -> None:
    _, exploration, is_scarce = explored(limit)
    assert exploration.stop_reason == "saturated"
    assert not is_scarce


def test_nothing_is_done_again_where_only_multi_pattern_rules_are_cut_short() -> None:
    _, exploration, is_scarce = explored(80, example_rules("join-sums"))
    assert exploration.stop_reason == "nodes"
    assert not is_scarce


def test_multi_pattern_rules_that_have_had_their_budget_do_not_hold_up_the_others() -> None:
    """Else each of many iterations would take a part of what is left, and never an end."""
    egraph, exploration, _ = explored(60, multi_iterations=20)
    assert exploration.stop_reason == "nodes"
    assert len(exploration.log) < 5
    assert egraph.counts()[0] < 60


@pytest.mark.parametrize("e_nodes", [0, 10, 1_000, 49_999, 50_000])
def test_the_budget_is_smaller_where_it_is_scarce_and_never_beyond_the_limit(e_nodes: int) -> None:
    limit = 50_000
    assert e_nodes <= scarce_budget(e_nodes, limit) <= multi_budget(e_nodes, limit) <= limit
