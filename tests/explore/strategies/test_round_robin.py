"""A search strategy that uses steps only ends where saturation ends."""

from __future__ import annotations

import pytest

from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.explore.step import StepBudget
from relational_tensat.explore.world import begin_world
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph
from tests.egraph.invariants import assert_invariants
from tests.explore.canonical import same
from tests.explore.example_rules import example_rules
from tests.explore.graphs import mixed, sum_of
from tests.explore.strategies.round_robin import round_robin


@pytest.mark.parametrize(
    ("graph", "rules"),
    [
        (sum_of(5), example_rules("swap", "regroup")),
        (mixed(), example_rules("twice", "same", "swap", "factor")),
    ],
)
def test_it_reaches_the_e_graph_of_saturation(graph: Graph, rules: list[Rule]) -> None:
    saturated = EGraph.create(graph)
    options = ExplorationOptions(50)
    assert explore(saturated, rules, options).stop_reason == "saturated"
    egraph = EGraph.create(graph)
    assert round_robin(begin_world(egraph, rules), StepBudget(50_000))
    assert same(saturated, egraph)
    assert_invariants(egraph)
