"""A search strategy that uses steps only ends where saturation ends; with a name, a run may use it."""

from __future__ import annotations

from pathlib import Path

import pytest

from relational_tensat import Options, optimize
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.explore.strategies import STRATEGIES
from relational_tensat.explore.strategies.strategy import SearchSettings
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph
from tests.egraph.invariants import assert_invariants
from tests.explore.canonical import same
from tests.explore.example_rules import example_rules
from tests.explore.graphs import mixed, sum_of
from tests.explore.strategies.round_robin import round_robin
from tests.explore.strategies.test_focus import extractor_of


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
    search = SearchSettings(options, extractor_of(egraph))
    assert round_robin(egraph, rules, search).stop_reason == "saturated"
    assert same(saturated, egraph)
    assert_invariants(egraph)


def test_a_run_uses_it_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STRATEGIES, "round-robin", round_robin)
    graph = mixed()
    # It has no k_multi: rules of several patterns would let the e-graph grow without end.
    files = tuple(Path("rules") / name for name in ("identity.rules", "pointwise.rules"))
    by_saturation = optimize(graph, Options.of(cost="t4", search="saturation", rules=files))
    options = Options.of(cost="t4", search="round-robin", iterations=50, rules=files)
    result = optimize(graph, options)
    assert (result.cost_after_us, result.stop_reason) == (by_saturation.cost_after_us, "saturated")
