"""Saturation: the strategy above the step."""

from __future__ import annotations

import pytest

from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore
from tests.explore.example_rules import example_rules
from tests.explore.graphs import mixed


@pytest.mark.parametrize("schedule", ["saturated", "first"])
def test_rules_without_a_multi_pattern_rule_saturate(schedule: str) -> None:
    for multi_iterations in (0, 1, 2):
        egraph = EGraph.create(mixed())
        options = ExplorationOptions(multi_iterations=multi_iterations, multi_schedule=schedule)
        exploration = explore(egraph, example_rules("swap"), options)
        assert exploration.stop_reason == "saturated"
        assert exploration.iterations <= 2 + multi_iterations
        egraph.close()
