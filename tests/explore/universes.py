"""Universes of which worlds are grown step by step."""

from __future__ import annotations

from collections.abc import Sequence

from relational_tensat.egraph import EGraph
from relational_tensat.egraph.schema import create_worlds
from relational_tensat.explore.members import Members
from relational_tensat.explore.step import StepBudget, step
from relational_tensat.explore.world import World, begin_world
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph
from tests.explore.world_invariants import assert_world_invariants, ids, members_of

BUDGET = StepBudget(50_000)


def universe_of(graph: Graph, rules: Sequence[Rule]) -> World:
    """Return a universe in which no world has begun."""
    egraph = EGraph.create(graph)
    egraph.is_universe = True
    create_worlds(egraph.database)
    return begin_world(egraph, rules)


def original(egraph: EGraph) -> list[int]:
    """Return the e-nodes of the original graph, operands first."""
    return sorted(ids(egraph, "SELECT id FROM enode WHERE iteration = 0"))


def begin(world: World, number: int, enodes: Sequence[int], universe_limit: int = 50_000) -> None:
    """Begin a world in a universe."""
    with world.transaction():
        world.begin_members(Members(world.egraph, number, universe_limit), enodes)


def turns(world: World, count: int) -> list[frozenset[int]]:
    """Return the rules of so many steps: all at first, then those of one source."""
    return [world.rules.all_rules] + [world.rules.single_rules] * (count - 1)


def grow(world: World, number: int, count: int, budget: StepBudget = BUDGET) -> None:
    """Step a world of a universe, and check what must hold after each step."""
    for rules in turns(world, count):
        delta = step(world, rules, budget)
        world.flush()
        assert world.members is not None
        assert world.members.size == len(members_of(world.egraph, number))
        assert_world_invariants(world.egraph, number)
        if delta.is_empty:
            return
