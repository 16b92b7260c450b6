"""Steps: all or nothing, and worlds side by side in one database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from relational_tensat.base.errors import UsageError
from relational_tensat.egraph import EGraph
from relational_tensat.egraph.database import Interrupted
from relational_tensat.explore.compile.compiled_rules import CompiledRules
from relational_tensat.explore.step import Delta, Starved, StepBudget, step
from relational_tensat.explore.world import World, begin_world
from relational_tensat.models import MODELS
from relational_tensat.rules.library import taso_rules
from tests.egraph.invariants import assert_invariants
from tests.explore.canonical import same
from tests.explore.example_rules import example_rules
from tests.explore.graphs import mixed, separate_sums, sum_of

BUDGET = StepBudget(50_000)


def steps(world: World, budget: StepBudget = BUDGET) -> Iterator[tuple[Delta, int]]:
    """Step a world by all its rules, then by those of one source; yield what each did, and statements."""
    rules = world.rules.all_rules
    while True:
        before = world.egraph.database.statements
        delta = step(world, rules, budget)
        yield delta, world.egraph.database.statements - before
        if delta.is_empty:
            return
        rules = world.rules.single_rules


def test_two_models_interleaved_are_what_they_are_apart() -> None:
    models = [MODELS["bert"](), MODELS["nasrnn"]()]
    apart = [begin_world(EGraph.create(model), taso_rules()) for model in models]
    expected = [list(steps(world)) for world in apart]
    first = begin_world(EGraph.create(models[0]), taso_rules())
    second = begin_world(first.egraph.beside(models[1], "second"), first.rules)
    running = [steps(world) for world in (first, second)]
    deltas: list[list[tuple[Delta, int]]] = [[], []]
    while running_now := [i for i in (0, 1) if len(deltas[i]) < len(expected[i])]:
        for number in running_now:
            deltas[number].append(next(running[number]))
    assert deltas == expected
    for world, other in zip((first, second), apart, strict=True):
        world.flush()
        other.flush()
        assert world.egraph.counters() == other.egraph.counters()
        assert same(world.egraph, other.egraph)
        assert_invariants(world.egraph)


def test_worlds_of_one_model_share_rules_and_signatures() -> None:
    first = begin_world(EGraph.create(mixed()), example_rules())
    for _ in range(2):
        step(first, first.rules.all_rules, BUDGET)
    signatures = len(first.egraph.catalogue.signatures)
    second = begin_world(first.egraph.beside(mixed(), "second"), first.rules)
    for _ in range(2):
        step(second, second.rules.all_rules, BUDGET)
    second.flush()
    assert same(first.egraph, second.egraph)
    assert len(first.egraph.catalogue.signatures) == signatures
    count = len(first.rules.rules)
    assert first.egraph.database.execute("SELECT count(*) FROM rule") == [(count,)]


def test_only_the_rules_of_a_step_are_applied() -> None:
    world = begin_world(EGraph.create(mixed()), example_rules())
    for name in ("swap", "join-products", "negate"):
        (number,) = world.rules.named(name)
        delta = step(world, [number], BUDGET)
        assert set(delta.matches) == {number}
        assert delta.built
    applied = world.egraph.database.execute("SELECT DISTINCT rule FROM enode WHERE rule > 0")
    world.flush()
    names = {world.rules.rule(number).rule.name for (number,) in applied}
    assert names == {"swap", "join-products", "negate"}
    assert_invariants(world.egraph)


def test_a_rule_that_was_matched_finds_only_what_is_new() -> None:
    world = begin_world(EGraph.create(sum_of(4)), example_rules("swap"))
    assert step(world, world.rules.all_rules, BUDGET).total_matches == 3
    assert step(world, world.rules.all_rules, BUDGET).total_matches == 3  # those that it built
    assert step(world, world.rules.all_rules, BUDGET).is_empty


def test_what_the_node_budget_leaves_out_is_reported() -> None:
    world = begin_world(EGraph.create(sum_of(5)), example_rules("swap", "regroup"))
    delta = step(world, world.rules.all_rules, StepBudget(world.egraph.e_nodes + 2))
    assert not delta.single_complete
    assert delta.multi_complete
    assert delta.built == 2


@pytest.mark.parametrize("reason", [Starved, Interrupted])
def test_a_step_that_is_not_carried_out_leaves_the_world_as_it_was(
    reason: type[Exception],
) -> None:
    egraph = EGraph.create(separate_sums(6))
    world = begin_world(egraph, example_rules("join-sums", "swap"))
    before, rules = egraph.counters(), world.rules.all_rules
    if reason is Interrupted:
        egraph.database.interrupt()
    with pytest.raises(reason):
        step(world, rules, StepBudget(60, whole_above=20))
    egraph.database.resume()
    assert egraph.counters() == before
    assert world.steps == world.last_matched(rules) == 0
    assert step(world, rules, BUDGET).built
    world.flush()
    assert_invariants(egraph)


def test_rules_of_another_set_are_rejected() -> None:
    first = begin_world(EGraph.create(mixed()), example_rules("swap"))
    begin_world(first.egraph.beside(mixed(), "second"), example_rules("negate"))
    with pytest.raises(UsageError, match="begun with other rules"):
        step(first, first.rules.all_rules, BUDGET)


def test_a_rule_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match="rule 'swop': no rule of that name"):
        CompiledRules(example_rules("swap")).named("swop")


def test_what_was_judged_in_a_step_that_is_undone_is_judged_again() -> None:
    """Else unions would name instances whose rows have been undone with it."""
    world = begin_world(EGraph.create(mixed()), example_rules())
    with pytest.raises(KeyError), world.transaction():
        step(world, world.rules.single_rules, BUDGET)
        raise KeyError
    assert step(world, world.rules.single_rules, BUDGET).unions > 0
    world.matcher.log_instances()
    unknown = "SELECT count(*) FROM union_log ANTI JOIN instance_log ON instance_log.id = instance"
    assert world.egraph.database.execute(unknown) == [(0,)]
