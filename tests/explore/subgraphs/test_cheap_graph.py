"""The cheapest graph by moves, against extraction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from bench.models import MODELS
from relational_tensat.cost import load_profile
from relational_tensat.explore.subgraphs.cheap_graph import CheapGraph, Move, moved, moves_of
from relational_tensat.explore.subgraphs.node_costs import NodeCosts, SignatureCosts
from relational_tensat.explore.subgraphs.universe import Universe
from relational_tensat.extract import extract
from relational_tensat.extract.greedy.dag import cheapest_greedy
from relational_tensat.extract.problem import dag_cost_us
from relational_tensat.extract.tables import extraction_problem, signature_costs
from relational_tensat.rules.library import load_rules, taso_rules
from tests.explore.subgraphs.side_by_side import original, random_steps, subgraphs_of, universe_of
from tests.tiers import nightly

COST = load_profile("tensat_t4")
SUBGRAPHS, STEPS = 6, 5


def costs_of(universe: Universe) -> NodeCosts:
    """Return what the e-nodes of a universe cost."""
    egraph = universe.egraph
    signatures = SignatureCosts(egraph.catalogue, lambda ids: signature_costs(egraph, COST, ids))
    return NodeCosts(universe.arrays, signatures, egraph.root)


@pytest.mark.parametrize("model", [nightly("nasrnn"), "bert"])
def test_it_costs_what_it_chooses_and_no_less_than_the_optimum(model: str) -> None:
    universe = universe_of(MODELS[model](), load_rules())
    egraph = universe.egraph
    members = original(universe)
    subgraphs = subgraphs_of(universe, SUBGRAPHS, 600)
    fired = [step.applications for _, step in random_steps(subgraphs, STEPS, seed=5)]
    prices = costs_of(universe)
    members = np.unique(universe.arrays.became[members])
    choice = {int(universe.arrays.owner[enode]): int(enode) for enode in members[::-1]}
    ratios = []
    for subgraph in range(SUBGRAPHS):
        graph = CheapGraph(prices, members.tolist(), dict(choice))
        before = graph.cost_us
        for applications in (step[subgraph] for step in fired):
            graph.enter(moves_of(universe, applications).values())
            assert graph.cost_us <= before
            before = graph.cost_us
        assert graph.members == set(subgraphs.masks.members(subgraph).tolist())
        chosen = graph.chosen()
        assert graph.cost_us == pytest.approx(sum(prices.cost_us[e] for e in chosen.values()))
        assert set(chosen.values()) <= graph.members
        seen: set[int] = set()
        for owner, enode in chosen.items():
            assert set(prices.children[enode]) <= seen
            seen.add(owner)
        assert moved(graph, prices).cost_us == pytest.approx(graph.cost_us)
        egraph.catalogue.flush(egraph.database)
        egraph.connection.execute(
            "UPDATE enode SET filtered = NOT list_contains($ids::INTEGER[], id)",
            {"ids": sorted(graph.members)},
        )
        table = extraction_problem(egraph, COST)
        assert graph.cost_us >= extract(table.problem).cost_us * (1 - 1e-9)
        ratios.append(graph.cost_us / dag_cost_us(table.problem, cheapest_greedy(table.problem)[0]))
    assert np.median(ratios) <= 1.05


def test_what_is_told_without_counting_is_what_counting_tells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    universe = universe_of(MODELS["bert"](), taso_rules())
    members = original(universe)
    fired = [
        step.applications for _, step in random_steps(subgraphs_of(universe, 3, 2_000), 8, seed=6)
    ]
    prices = costs_of(universe)
    members = np.unique(universe.arrays.became[members])
    choice = {int(universe.arrays.owner[enode]): int(enode) for enode in members[::-1]}

    def graphs() -> list[tuple[float, dict[int, int]]]:
        found = []
        for subgraph in range(3):
            graph = CheapGraph(prices, members.tolist(), dict(choice))
            for applications in (step[subgraph] for step in fired):
                graph.enter(moves_of(universe, applications).values())
            found.append((graph.cost_us, dict(graph.choice)))
        return found

    told = graphs()
    rejected = 0

    def counts_all(self: CheapGraph, enodes: Sequence[int], most_us: float) -> bool:
        nonlocal rejected
        rejected += costs_as_much(self, enodes, most_us)
        return False

    costs_as_much = CheapGraph._costs_as_much
    monkeypatch.setattr(CheapGraph, "_costs_as_much", counts_all)
    assert graphs() == told
    monkeypatch.setattr(CheapGraph, "_may_drop", lambda *_: True)
    assert graphs() == told
    assert rejected > 20


def test_a_move_that_saves_nothing_and_closes_a_cycle_is_not_made() -> None:
    """Class 1 is a view of class 3 or of class 2, and class 2 one of class 1: the root needs both."""
    prices = NodeCosts.__new__(NodeCosts)
    prices.root = 0
    prices.owner = [0, 1, 1, 2, 3]
    prices.children = [(1, 2), (3,), (2,), (1,), ()]
    prices.cost_us = [1.0, 0.0, 0.0, 0.0, 0.0]
    prices.weight_only = [False] * 4
    prices.members = [[0], [1, 2], [3], [4]]
    prices.users = [[], [0, 3], [0, 2], [1]]
    graph = CheapGraph(prices, [0, 1, 3, 4], {0: 0, 1: 1, 2: 3, 3: 4})
    graph.enter([Move((2,))])
    assert graph.cost_us == 1.0
    assert graph.chosen() == {3: 4, 1: 1, 2: 3, 0: 0}
