"""Universes of which subgraphs are grown step by step."""

from __future__ import annotations

from collections.abc import Sequence

from relational_tensat.egraph import EGraph
from relational_tensat.egraph.schema import create_subgraphs
from relational_tensat.explore.members import Members
from relational_tensat.explore.step import StepBudget, step
from relational_tensat.explore.subgraph import Subgraph, begin_subgraph
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph
from tests.explore.subgraph_invariants import assert_subgraph_invariants, ids, members_of

BUDGET = StepBudget(50_000)


def universe_of(graph: Graph, rules: Sequence[Rule]) -> Subgraph:
    """Return a universe in which no subgraph has begun."""
    egraph = EGraph.create(graph)
    egraph.is_universe = True
    create_subgraphs(egraph.database)
    return begin_subgraph(egraph, rules)


def original(egraph: EGraph) -> list[int]:
    """Return the e-nodes of the original graph, operands first."""
    return sorted(ids(egraph, "SELECT id FROM enode WHERE iteration = 0"))


def begin(
    subgraph: Subgraph, number: int, enodes: Sequence[int], universe_limit: int = 50_000
) -> None:
    """Begin a subgraph in a universe."""
    with subgraph.transaction():
        members = Members(subgraph.egraph, number, universe_limit)
        members.begin(enodes)
        subgraph.begin_members(members)


def turns(subgraph: Subgraph, count: int) -> list[frozenset[int]]:
    """Return the rules of so many steps: all at first, then those of one source."""
    return [subgraph.rules.all_rules] + [subgraph.rules.single_rules] * (count - 1)


def grow(subgraph: Subgraph, number: int, count: int, budget: StepBudget = BUDGET) -> None:
    """Step a subgraph of a universe, and check what must hold after each step."""
    for rules in turns(subgraph, count):
        delta = step(subgraph, rules, budget)
        subgraph.flush()
        assert subgraph.members is not None
        assert subgraph.members.size == len(members_of(subgraph.egraph, number))
        assert_subgraph_invariants(subgraph.egraph, number)
        if delta.is_empty:
            return
