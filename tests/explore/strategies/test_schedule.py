"""Schedules: what they explore, beside what exploration without one does."""

from __future__ import annotations

from pathlib import Path

import pytest

from relational_tensat import Options, optimize
from relational_tensat.base.errors import UsageError
from relational_tensat.egraph import EGraph
from relational_tensat.explore import Exploration, ExplorationOptions, explore
from relational_tensat.explore.schedule import parse_schedule, rules_by_ruleset
from tests.egraph.invariants import assert_invariants
from tests.explore.canonical import same
from tests.explore.example_rules import example_rules
from tests.explore.graphs import mixed


def explored(options: ExplorationOptions) -> tuple[Exploration, EGraph]:
    egraph = EGraph.create(mixed())
    exploration = explore(egraph, example_rules(), options)
    assert_invariants(egraph, "efficient")
    return exploration, egraph


def test_the_schedule_that_is_the_default_gives_what_the_default_gives() -> None:
    scheduled, left = explored(ExplorationOptions(30, schedule="all; saturate(single)"))
    default, right = explored(ExplorationOptions(30))
    assert (scheduled.stop_reason, default.stop_reason) == ("schedule", "saturated")
    assert same(left, right)
    sizes = [[(entry.e_nodes, entry.unions) for entry in e.log] for e in (scheduled, default)]
    assert sizes[0] == sizes[1]


def test_only_the_rulesets_of_a_step_take_part_in_it() -> None:
    exploration, egraph = explored(ExplorationOptions(30, schedule="repeat 2 (single); multi"))
    assert exploration.iterations == 3
    rows = egraph.connection.execute(
        "SELECT DISTINCT m.iteration, r.name FROM match_log AS m JOIN rule AS r ON r.id = m.rule"
    ).fetchall()
    rulesets = rules_by_ruleset(example_rules())
    for iteration, rule in rows:
        assert rule in rulesets["multi" if iteration == 3 else "single"]
    assert {iteration for iteration, _ in rows} == {1, 2, 3}


def test_saturating_is_until_nothing_is_added() -> None:
    exploration, egraph = explored(ExplorationOptions(30, schedule="saturate(single)"))
    assert exploration.stop_reason == "schedule"
    *before, last = exploration.log
    assert last.unions == 0 and last.e_nodes == before[-1].e_nodes
    more = explore(egraph, example_rules(), ExplorationOptions(1, schedule="single"))
    assert more.log[-1].unions == 0


def test_limits_hold() -> None:
    exploration, _ = explored(ExplorationOptions(2, schedule="saturate(all)"))
    assert (exploration.stop_reason, exploration.iterations) == ("iterations", 2)
    exploration, egraph = explored(ExplorationOptions(30, schedule="saturate(all)", node_limit=60))
    assert exploration.stop_reason == "nodes"
    assert egraph.counts()[0] <= 60


def test_a_schedule_without_rules_is_at_its_end() -> None:
    exploration = explore(
        EGraph.create(mixed()), example_rules("swap"), ExplorationOptions(schedule="multi")
    )
    assert (exploration.stop_reason, exploration.iterations) == ("schedule", 0)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"schedule": "saturte(all)"}, "did you mean 'saturate'?"),
        ({"schedule": "all", "multi_iterations": 2}, "schedule and multi_iterations = 2, expected one"),
        ({"schedule": "all", "multi_schedule": "saturated"}, "schedule and multi_schedule = saturated"),
    ],
)  # fmt: skip
def test_options_that_do_not_go_together(options: dict[str, object], reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        Options.of(**options)
    assert reason in str(caught.value)


def test_a_run_names_the_nearest_ruleset_before_it_makes_anything(tmp_path: Path) -> None:
    db = tmp_path / "run.duckdb"
    with pytest.raises(UsageError, match=r"no ruleset or rule 'sinlge'; did you mean 'single'\?"):
        optimize(mixed(), Options.of(schedule="saturate(sinlge)", db=db))
    assert not db.exists()


def test_a_run_reports_that_its_schedule_is_carried_out() -> None:
    options = Options.of(schedule="saturate(fusion + identity)", allow_unsound=True)
    result = optimize(mixed(), options)
    assert result.stop_reason == "schedule"
    applied = {name for name, stats in result.rules.items() if stats.applied}
    assert applied
    assert str(parse_schedule(options.exploration.schedule)) == "saturate(fusion + identity)"
