"""Exploration that ends when the e-graph has reached a goal."""

from __future__ import annotations

import time

from relational_tensat.egraph.database import OutOfMemory
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore import Exploration, ExplorationOptions, Observer, explore
from relational_tensat.rules.language import parse_rules
from tests.graphs import shared_matmuls

#: Ever more e-nodes: there is no end but a limit, or the goal.
GROWS = parse_rules(
    '(rule grows (law "x + y = 0.5·(2·x + 2·y)") (from (matmul ?x ?y))'
    " (to (smul (matmul (smul ?x :value 2.0) ?y) :value 0.5)))",
    "test",
)


def grown(e_nodes: int) -> tuple[Exploration, EGraph]:
    egraph = EGraph.create(shared_matmuls())
    exploration = explore(
        egraph,
        GROWS,
        ExplorationOptions(iterations=6),
        observer=Observer(until=lambda egraph: egraph.e_nodes >= e_nodes),
    )
    return exploration, egraph


def test_the_goal_ends_the_exploration_after_the_iteration_that_reached_it() -> None:
    start = EGraph.create(shared_matmuls()).e_nodes
    exploration, egraph = grown(start + 1)
    assert (exploration.stop_reason, exploration.iterations) == ("goal", 1)
    assert egraph.e_nodes > start
    assert egraph.counts() == (egraph.e_nodes, egraph.e_classes)


def test_a_goal_that_is_not_reached_changes_nothing() -> None:
    exploration, egraph = grown(1_000_000)
    without = EGraph.create(shared_matmuls())
    assert (
        explore(without, GROWS, ExplorationOptions(iterations=6)).stop_reason
        == exploration.stop_reason
    )
    assert exploration.stop_reason == "iterations"
    assert egraph.counts() == without.counts()


def test_what_follows_an_iteration_may_end_the_exploration() -> None:
    followed: list[int] = []

    def after(iteration: int) -> str | None:
        followed.append(iteration)
        return "enough" if iteration == 3 else None

    exploration = explore(
        EGraph.create(shared_matmuls()),
        GROWS,
        ExplorationOptions(iterations=6),
        observer=Observer(after=after),
    )
    assert (exploration.stop_reason, exploration.iterations) == ("enough", 3)
    assert followed == [1, 2, 3]


def test_nothing_follows_the_last_iteration() -> None:
    followed: list[int] = []
    limits = ExplorationOptions(iterations=2)
    exploration = explore(
        EGraph.create(shared_matmuls()), GROWS, limits, observer=Observer(after=followed.append)
    )
    assert exploration.stop_reason == "iterations"
    assert followed == [1]


def test_a_limit_reached_by_what_follows_an_iteration_is_named() -> None:
    egraph = EGraph.create(shared_matmuls())

    def exhaust(iteration: int) -> None:
        raise OutOfMemory("too little")

    assert (
        explore(egraph, GROWS, ExplorationOptions(6), observer=Observer(after=exhaust)).stop_reason
        == "memory"
    )

    def wait(iteration: int) -> None:
        while not egraph.database.is_interrupted:
            time.sleep(0.01)
        egraph.counts()

    exploration = explore(
        egraph, GROWS, ExplorationOptions(6, time_limit_s=1.0), observer=Observer(after=wait)
    )
    assert exploration.stop_reason == "time"
    assert egraph.counts() == (egraph.e_nodes, egraph.e_classes)
