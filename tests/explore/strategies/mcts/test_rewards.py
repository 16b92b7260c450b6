"""Rewards by an extractor: each subgraph once, by what it has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from bench.models import MODELS
from relational_tensat.base.process import ProcessOptions
from relational_tensat.base.watch import ShouldStop
from relational_tensat.cost import load_profile
from relational_tensat.explore.strategies.mcts.rewards import Rewards
from relational_tensat.explore.subgraphs.cheap_graph import moves_of
from relational_tensat.explore.subgraphs.node_costs import SignatureCosts, SubgraphArrays
from relational_tensat.extract import ExtractionOptions
from relational_tensat.extract.anytime import AnytimeExtractor
from relational_tensat.rules.library import taso_rules
from relational_tensat.run.progress import Silent
from tests.explore.subgraphs.side_by_side import original, random_steps, subgraphs_of, universe_of


class Counting(AnytimeExtractor):
    """Counts the subgraphs that it is asked for."""

    asked = 0

    def subgraph_cost_us(
        self, subgraph: SubgraphArrays, extractor: str, should_stop: ShouldStop | None = None
    ) -> float:
        self.asked += 1
        return super().subgraph_cost_us(subgraph, extractor, should_stop)

    def prices_us(self, signatures: Sequence[int]) -> list[float]:
        return super().prices_us(signatures)


def test_a_subgraph_is_extracted_from_once_and_costs_what_the_extractor_finds() -> None:
    universe = universe_of(MODELS["bert"](), taso_rules())
    egraph = universe.egraph
    chooser = Counting(
        egraph, load_profile("tensat_t4"), ExtractionOptions(), ProcessOptions(), Silent()
    )
    subgraphs = subgraphs_of(universe, 4, 500)
    fired = [step.applications for _, step in random_steps(subgraphs, 2, seed=6)]

    def rewards(extractor: str) -> Rewards:
        prices = SignatureCosts(egraph.catalogue, chooser.prices_us)
        return Rewards(universe, chooser, extractor, prices)

    optimum, moves = rewards("ilp"), rewards("moves")
    members = np.unique(universe.arrays.became[original(universe)])
    assert optimum.cost_us(optimum.first(members)) == pytest.approx(chooser.original_us)
    assert moves.cost_us(moves.first(members)) == pytest.approx(chooser.original_us)
    for subgraph in range(4):
        graph = optimum.first(members)
        for applications in (step[subgraph] for step in fired):
            graph = graph.copy()
            graph.enter(moves_of(universe, applications).values())
            assert optimum.cost_us(graph) <= graph.cost_us * (1 + 1e-9)
    contents = {subgraphs.masks.members(subgraph).tobytes() for subgraph in range(4)}
    asked = chooser.asked
    assert len(contents) < asked <= 1 + 4 * 2
    by_dag = rewards("greedy-dag")
    assert optimum.cost_us(graph) * (1 - 1e-9) <= by_dag.cost_us(by_dag.current(graph))
    asked = chooser.asked
    for _ in range(3):
        assert optimum.cost_us(graph) <= graph.cost_us * (1 + 1e-9)
    assert chooser.asked == asked
