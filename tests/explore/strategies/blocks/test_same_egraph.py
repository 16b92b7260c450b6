"""With and without reuse of recurring blocks: the same e-graph, by e-nodes and classes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relational_tensat.egraph import EGraph
from relational_tensat.explore import Exploration, ExplorationOptions, Observer
from relational_tensat.explore.outcome import IterationReport
from relational_tensat.explore.strategies.blocks import (
    BlocksReport,
    explore_blocks,
    exploring,
)
from relational_tensat.explore.strategies.blocks import (
    partition as plan,
)
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph
from tests.egraph.invariants import assert_invariants
from tests.explore.canonical import same
from tests.explore.example_rules import example_rules
from tests.explore.strategies.blocks.models import STEPS, chain, residual_net

#: Rules that saturate: some within an operator or two, some across the borders of blocks.
RULES = example_rules("twice", "same", "negate", "join-products", "zero")


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "LEAST_NODES", 2)


def explored(
    graph: Graph, rules: list[Rule], limits: ExplorationOptions, mode: str
) -> tuple[EGraph, Exploration, BlocksReport | None]:
    egraph = EGraph.create(graph)
    return egraph, *explore_blocks(egraph, rules, replace(limits, blocks=mode))


def compared(
    graph: Graph, rules: list[Rule], limits: ExplorationOptions | None = None
) -> BlocksReport | None:
    """Explore with and without reuse; fail unless the e-graphs are the same. Return what was reused."""
    limits = limits or ExplorationOptions()
    without, plainly, _ = explored(graph, rules, limits, "never")
    egraph, exploration, reused = explored(graph, rules, limits, "always")
    assert_invariants(egraph)
    assert exploration.stop_reason == plainly.stop_reason == "saturated"
    assert same(egraph, without)
    return reused


def test_a_chain_of_equal_blocks() -> None:
    reused = compared(chain([["relu"], *[["residual", "products"]] * 6]), RULES)
    assert reused is not None
    assert (reused.blocks, reused.distinct, reused.explored, reused.places) == (6, 1, 2, 6)
    assert reused.copied > 0


def test_what_is_true_of_the_first_block_only_is_not_copied() -> None:
    """relu(relu(x)) = relu(x) holds where x is what a relu gives: only behind the head of the chain."""
    head = ["relu"]
    body = [["relu", "residual", "products"]] * 4
    assert compared(chain([head, *body]), RULES) is not None


def test_blocks_that_share_a_weight_and_a_constant() -> None:
    reused = compared(chain([["tied", "shift", "products"]] * 5, tail=["tied", "tied"]), RULES)
    assert reused is not None


def test_residual_blocks_of_convolutions_under_the_rules_that_ship() -> None:
    reused = compared(residual_net(5), load_rules(), ExplorationOptions(multi_iterations=2))
    assert reused is not None
    assert reused.blocks == 5


@settings(max_examples=6, deadline=None)
@given(
    st.lists(st.sampled_from(STEPS), min_size=1, max_size=3),
    st.integers(3, 5),
    st.lists(st.sampled_from(STEPS), max_size=3),
    st.lists(st.sampled_from(STEPS), max_size=3),
    st.integers(0, 2),
)
def test_random_chains(
    block: list[str], count: int, head: list[str], tail: list[str], multi: int
) -> None:
    compared(
        chain([head, *[block] * count], tail), RULES, ExplorationOptions(multi_iterations=multi)
    )


def test_windows_that_are_not_saturated_are_not_used() -> None:
    graph, limits = chain([["residual", "products"]] * 6), ExplorationOptions(iterations=1)
    without, plainly, _ = explored(graph, RULES, limits, "never")
    egraph, exploration, reused = explored(graph, RULES, limits, "always")
    assert reused is None
    assert exploration.stop_reason == plainly.stop_reason == "iterations"
    assert same(egraph, without)


def test_the_node_limit_holds() -> None:
    graph = chain([["residual", "products"]] * 6)
    original = EGraph.create(graph).e_nodes
    saturated, _, _ = explored(graph, RULES, ExplorationOptions(), "never")
    for limit in (original + 5, saturated.e_nodes - 1, 4 * saturated.e_nodes):
        sizes: list[int] = []
        egraph = EGraph.create(graph)
        limits = ExplorationOptions(node_limit=limit, blocks="always")

        def note(report: IterationReport, sizes: list[int] = sizes) -> None:
            sizes.append(report.e_nodes)

        exploration, _ = explore_blocks(egraph, RULES, limits, observer=Observer(progress=note))
        assert max(sizes) <= limit
        assert egraph.e_nodes <= limit
        without, plainly, _ = explored(graph, RULES, limits, "never")
        assert exploration.stop_reason == plainly.stop_reason
        assert egraph.e_nodes == without.e_nodes


def test_small_explorations_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = chain([["residual", "products"]] * 8)
    assert explored(graph, RULES, ExplorationOptions(), "auto")[2] is None
    assert explored(
        graph, RULES, ExplorationOptions(multi_iterations=exploring.MANY_MULTI), "auto"
    )[2]
