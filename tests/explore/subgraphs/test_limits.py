"""Limits: a subgraph never has more e-nodes than it may, also inside one action, nor has the universe."""

from __future__ import annotations

import numpy as np
import pytest

from relational_tensat.explore.exploration_options import ExplorationOptions
from relational_tensat.explore.subgraphs.applications import BUILT
from relational_tensat.explore.subgraphs.node_arrays import Ints, Masks
from relational_tensat.explore.subgraphs.universe import Universe
from relational_tensat.rules.library import taso_rules
from tests.explore.subgraphs.side_by_side import (
    fire,
    looked_at,
    original,
    random_steps,
    subgraphs_of,
    universe_of,
)
from tests.run.resume.models import layers


def grown() -> tuple[Universe, Ints]:
    """Return a universe in which all that a subgraph could do next is built, and its e-nodes."""
    universe = universe_of(layers(2, 4), taso_rules())
    subgraphs = subgraphs_of(universe, 1, 50_000)
    for _ in random_steps(subgraphs, 2, seed=8):
        pass
    members = subgraphs.masks.members(0)
    for rule in np.flatnonzero(subgraphs.live_rules()[:, 0]).tolist():
        fire(
            looked_at(universe, masks_of(universe, members), 50_000), np.array([rule], np.int32), 3
        )
    return universe, np.unique(universe.arrays.became[members])


def masks_of(universe: Universe, members: Ints) -> Masks:
    return Masks([universe.arrays.became[members]], universe.arrays.size)


def fitting(universe: Universe, members: set[int], places: list[int], limit: int) -> list[int]:
    """Return the first of some applications that fit into a subgraph, one after the other."""
    has, first = set(members), []
    for place in places:
        targets = set(universe.applications.targets[place].tolist()) - {0}
        if len(has | targets) > limit:
            break
        has |= targets
        first.append(place)
    return first


def test_in_one_action_a_subgraph_gets_what_fits_in_order_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "relational_tensat.explore.subgraphs.firings._AT_ONCE", 3
    )  # parts of an action
    universe, members = grown()
    applications = universe.applications
    has = set(members.tolist())
    n_cut = 0
    for rule in np.flatnonzero(
        looked_at(universe, masks_of(universe, members), 50_000).live_rules()[:, 0]
    ).tolist():
        wide = looked_at(universe, masks_of(universe, members), 50_000)
        (fired,) = fire(wide, np.array([rule], np.int32), 3).applications
        assert (applications.states[fired] == BUILT).all()
        size = int(wide.masks.sizes()[0])
        for limit in {len(has), (len(has) + size) // 2, size - 1, size}:
            narrow = looked_at(universe, masks_of(universe, members), limit)
            cut = fire(narrow, np.array([rule], np.int32), 3)
            expected = fitting(universe, has, fired.tolist(), limit)
            assert cut.applications[0].tolist() == expected
            assert cut.limited[0] == (limit < size)
            assert int(narrow.masks.sizes()[0]) <= limit
            n_cut += len(expected) < len(fired)
    assert n_cut > 5


def test_the_universe_has_as_many_e_nodes_as_it_may_and_no_more() -> None:
    def size_within(limit: int) -> tuple[int, bool]:
        universe = universe_of(layers(2, 4), taso_rules(), ExplorationOptions(universe_limit=limit))
        subgraphs = subgraphs_of(universe, 4, 2_000)
        for _ in random_steps(subgraphs, 2, seed=9):
            assert universe.egraph.e_nodes <= limit
        assert universe.egraph.counts()[0] == universe.egraph.e_nodes
        return universe.egraph.e_nodes, universe.is_full

    assert ExplorationOptions().universe_limit == 50_000
    whole, is_full = size_within(50_000)
    assert not is_full
    assert size_within(whole) == (whole, False)
    for limit in (whole - 1, (whole + len(original(universe_of(layers(2, 4), ())))) // 2):
        size, is_full = size_within(limit)
        assert size <= limit
        assert is_full
