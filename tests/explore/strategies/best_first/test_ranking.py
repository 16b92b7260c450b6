"""Estimates: from the original graph, what an application is alone worth; slack, by a slow oracle."""

from __future__ import annotations

import numpy as np
import pytest

from relational_tensat.base.process import ProcessOptions
from relational_tensat.cost import load_profile
from relational_tensat.explore.strategies.best_first.ranking import Ranking
from relational_tensat.explore.worlds.applications import WAITING
from relational_tensat.explore.worlds.masks import Masks
from relational_tensat.explore.worlds.node_arrays import Ints
from relational_tensat.explore.worlds.node_costs import NodeCosts
from relational_tensat.explore.worlds.pairs import Looked
from relational_tensat.explore.worlds.universe import Universe
from relational_tensat.extract import ExtractionOptions
from relational_tensat.extract.anytime import AnytimeExtractor
from relational_tensat.extract.problem import UNUSED
from relational_tensat.extract.slack import slack_of
from relational_tensat.models import MODELS
from relational_tensat.rules.library import load_rules
from relational_tensat.run.progress import Silent
from relational_tensat.tensor import Graph
from tests.explore.worlds.side_by_side import universe_of
from tests.extract.instances import random_problem
from tests.run.resume.models import layers

COST = load_profile("tensat_t4")


def waiting(universe: Universe) -> Ints:
    """Return all applications of an original graph."""
    there = np.flatnonzero(universe.arrays.exists).astype(np.int32)
    universe.pair(Masks([there], universe.arrays.size), Looked())
    return np.flatnonzero(universe.applications.states == WAITING).astype(np.int32)


def chooser_of(universe: Universe) -> AnytimeExtractor:
    """Return what extracts from a universe."""
    return AnytimeExtractor(universe.egraph, COST, ExtractionOptions(), ProcessOptions(), Silent())


@pytest.mark.parametrize(("graph", "every"), [(layers(1, 3), 1), (MODELS["vgg19"](), 5)])
def test_from_the_original_graph_estimates_are_what_applications_are_worth(
    graph: Graph, every: int
) -> None:
    """Oracle: each application carried out alone, and the cheapest graph then."""
    rules = load_rules()
    universe = universe_of(graph, rules)
    chooser = chooser_of(universe)
    costs = NodeCosts(universe.egraph.catalogue, chooser.prices_us)
    costs.refresh(universe.arrays)
    seed, places = chooser.choose(0), waiting(universe)
    estimates_us = Ranking(universe, costs, seed, chooser.slack()).estimates_us(places)
    assert estimates_us.min() < -1
    for place, estimate_us in list(zip(places, estimates_us, strict=True))[::every]:
        alone = universe_of(graph, rules)
        assert np.array_equal(waiting(alone), places)
        alone.build(np.array([place], np.int32), 1)
        cheapest_us = chooser_of(alone).choose(1).cost_us
        assert cheapest_us == pytest.approx(seed.cost_us + min(estimate_us, 0.0))


def test_slack_is_nothing_for_what_is_chosen_and_the_least_on_a_way_for_classes() -> None:
    """Oracle: the distances relaxed edge by edge until nothing changes."""
    seen = 0
    for number in range(40):
        problem = random_problem(number)
        choice = problem.original
        if choice[problem.root] == UNUSED:
            continue
        seen += 1
        slack = slack_of(problem, choice, np.arange(problem.n_nodes, dtype=np.int32))
        assert not slack.node_us[choice[choice != UNUSED]].any()
        assert (slack.node_us <= problem.cost_us + 1e-9).all()
        distance = np.full(problem.n_classes, np.inf)
        distance[problem.root] = 0.0
        for _ in range(problem.n_classes):
            for node in range(problem.n_nodes):
                through = distance[problem.node_class[node]] + slack.node_us[node]
                for child in problem.children(node):
                    distance[child] = min(distance[child], through)
        assert slack.class_us == pytest.approx(distance[problem.node_class])
    assert seen > 10
