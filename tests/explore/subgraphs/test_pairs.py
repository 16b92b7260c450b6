"""Pairs of matches: a look at what is new to subgraphs finds all that a look at all they have does."""

from __future__ import annotations

import numpy as np
import pytest

from relational_tensat.base.plan import Plan
from relational_tensat.explore.strategies.mcts import rollouts
from relational_tensat.explore.subgraphs import pairs
from relational_tensat.explore.subgraphs.firings import Subgraphs
from relational_tensat.explore.subgraphs.node_arrays import Masks
from relational_tensat.explore.subgraphs.pairs import SeenVersions
from relational_tensat.explore.subgraphs.universe import Universe
from relational_tensat.rules.library import taso_rules
from relational_tensat.rules.model import Rule
from relational_tensat.run.pipeline import optimize
from relational_tensat.tensor import Graph
from tests.explore.example_rules import example_rules
from tests.explore.graphs import sum_of
from tests.explore.subgraphs.side_by_side import random_steps, subgraphs_of, universe_of
from tests.run.resume.models import layers
from tests.run.test_tree_search import options


def missed(universe: Universe, masks: Masks) -> int:
    """Return how many pairs of subgraphs were not found yet."""
    return sum(
        len(found.sources) for found in universe._pairs.find(masks, SeenVersions(), universe.arrays)
    )


@pytest.mark.parametrize(
    ("graph", "rules", "merges"),
    [
        (layers(2, 4), taso_rules(), False),
        (sum_of(4), example_rules("swap", "regroup", "join-sums"), True),
    ],
)
def test_after_each_step_no_pair_is_missing(graph: Graph, rules: list[Rule], merges: bool) -> None:
    universe = universe_of(graph, rules)
    subgraphs = subgraphs_of(universe, 6, 700)
    n_pairs = universe.applications.count
    for _ in random_steps(subgraphs, 4, seed=11):
        assert missed(universe, subgraphs.masks.only(~subgraphs.is_done)) == 0
    assert universe.applications.count > n_pairs
    became_equal = (universe.arrays.became != np.arange(universe.arrays.size)).any()
    assert became_equal == merges


def test_a_tree_search_that_looks_at_all_again_decides_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def decisions() -> list[tuple[object, ...]]:
        result = optimize(layers(2, 4), options(tree_decisions=2))
        return [(d.rule, d.cost_us, d.best_us, d.e_nodes, d.universe) for d in result.decisions]

    found = decisions()
    looks = 0

    class Again(Subgraphs):
        def look(self) -> Plan[None]:
            nonlocal looks
            looks += 1
            self._looked = SeenVersions()
            yield from super().look()

    monkeypatch.setattr(rollouts, "Subgraphs", Again)
    assert decisions() == found
    assert looks > 5


def pairs_after_steps() -> tuple[Universe, set[bytes]]:
    """Return a universe after some steps, and what its pairs of matches are."""
    universe = universe_of(layers(2, 4), taso_rules())
    subgraphs = subgraphs_of(universe, 6, 700)
    for _ in random_steps(subgraphs, 3, seed=11):
        pass
    return universe, {row.tobytes() for row in universe.applications.sources}


def test_joined_in_small_parts_they_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    universe, expected = pairs_after_steps()
    monkeypatch.setattr(pairs, "_JOINED_AT_ONCE", 7)
    in_parts, found = pairs_after_steps()
    assert found == expected
    assert not universe.is_full and not in_parts.is_full


def test_where_there_are_too_many_the_universe_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    _, expected = pairs_after_steps()
    monkeypatch.setattr(pairs, "_JOINED_AT_ONCE", 7)
    monkeypatch.setattr(pairs, "_FOUND_AT_ONCE", 3)
    universe, found = pairs_after_steps()
    assert universe.is_full
    assert len(found) < len(expected)
