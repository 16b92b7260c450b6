"""Steps: all or nothing."""

from __future__ import annotations

import pytest

from relational_tensat.base.errors import UsageError
from relational_tensat.egraph import EGraph
from relational_tensat.egraph.database import Interrupted
from relational_tensat.explore.step import Starved, StepBudget, step
from relational_tensat.explore.subgraph import begin_subgraph
from tests.egraph.invariants import assert_invariants
from tests.explore.example_rules import example_rules
from tests.explore.graphs import mixed, separate_sums, sum_of

BUDGET = StepBudget(50_000)


def test_only_the_rules_of_a_step_are_applied() -> None:
    subgraph = begin_subgraph(EGraph.create(mixed()), example_rules())
    for name in ("swap", "join-products", "negate"):
        (number,) = (rule.id for rule in subgraph.rules.rules if rule.rule.name == name)
        delta = step(subgraph, [number], BUDGET)
        assert set(delta.matches) == {number}
        assert delta.built
    applied = subgraph.egraph.database.execute("SELECT DISTINCT rule FROM enode WHERE rule > 0")
    subgraph.flush()
    names = {subgraph.rules.rule(number).rule.name for (number,) in applied}
    assert names == {"swap", "join-products", "negate"}
    assert_invariants(subgraph.egraph)


def test_a_rule_that_was_matched_finds_only_what_is_new() -> None:
    subgraph = begin_subgraph(EGraph.create(sum_of(4)), example_rules("swap"))
    assert step(subgraph, subgraph.rules.all_rules, BUDGET).total_matches == 3
    assert (
        step(subgraph, subgraph.rules.all_rules, BUDGET).total_matches == 3
    )  # those that it built
    assert step(subgraph, subgraph.rules.all_rules, BUDGET).is_empty


def test_what_the_node_budget_leaves_out_is_reported() -> None:
    subgraph = begin_subgraph(EGraph.create(sum_of(5)), example_rules("swap", "regroup"))
    delta = step(subgraph, subgraph.rules.all_rules, StepBudget(subgraph.egraph.e_nodes + 2))
    assert not delta.single_complete
    assert delta.multi_complete
    assert delta.built == 2


@pytest.mark.parametrize("reason", [Starved, Interrupted])
def test_a_step_that_is_not_carried_out_leaves_the_subgraph_as_it_was(
    reason: type[Exception],
) -> None:
    egraph = EGraph.create(separate_sums(6))
    subgraph = begin_subgraph(egraph, example_rules("join-sums", "swap"))
    before, rules = egraph.counters(), subgraph.rules.all_rules
    if reason is Interrupted:
        egraph.database.interrupt()
    with pytest.raises(reason):
        step(subgraph, rules, StepBudget(60, whole_above=20))
    egraph.database.resume()
    assert egraph.counters() == before
    assert subgraph.steps == subgraph.since(rules) == 0
    assert step(subgraph, rules, BUDGET).built
    subgraph.flush()
    assert_invariants(egraph)


def test_rules_of_another_set_are_rejected() -> None:
    first = begin_subgraph(EGraph.create(mixed()), example_rules("swap"))
    begin_subgraph(first.egraph, example_rules("negate"))
    with pytest.raises(UsageError, match="begun with other rules"):
        step(first, first.rules.all_rules, BUDGET)


def test_what_was_judged_in_a_step_that_is_undone_is_judged_again() -> None:
    """Else unions would name instances whose rows have been undone with it."""
    subgraph = begin_subgraph(EGraph.create(mixed()), example_rules())
    with pytest.raises(KeyError), subgraph.transaction():
        step(subgraph, subgraph.rules.single_rules, BUDGET)
        raise KeyError
    assert step(subgraph, subgraph.rules.single_rules, BUDGET).unions > 0
    subgraph.matcher.log_instances()
    unknown = "SELECT count(*) FROM union_log ANTI JOIN instance_log ON instance_log.id = instance"
    assert subgraph.egraph.database.execute(unknown) == [(0,)]
