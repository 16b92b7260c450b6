"""What a cache has of a model's weights depends on how long the model takes to run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from relational_tensat.cost import AnalyticSource, load_profile
from relational_tensat.cost.analytic import with_cache_state
from relational_tensat.cost.profile import Profile
from relational_tensat.cost.source import graph_cost_us
from relational_tensat.tensor import Graph, Node, Weight, build_graph
from tests.graphs import f32


def products(count: int) -> Graph:
    """Return a chain of so many products with a matrix of 1 MiB each."""
    weights = {f"w{n}": Weight(f32(512, 512)) for n in range(count)}
    nodes = [Node("matmul", (f"y{n}", f"w{n}"), (f"y{n + 1}",)) for n in range(count)]
    return build_graph("products", {"y0": f32(32, 512)}, weights, nodes, [f"y{count}"])


def part_of(profile: Profile, count: int) -> float:
    return with_cache_state(profile, products(count)).cached


def test_a_run_takes_what_it_is_said_to_take() -> None:
    """The part is that of the time which the graph takes with that part: it is at rest."""
    profile = load_profile("cpu")
    found = with_cache_state(profile, products(6))
    assert 0 < found.cached < 1
    run_us = graph_cost_us(products(6), AnalyticSource(found))
    assert found.cached == pytest.approx(1 - run_us / profile.weight_cache_us)


def test_the_longer_a_run_the_less_is_left() -> None:
    profile = load_profile("cpu")
    parts = [part_of(profile, count) for count in (1, 2, 4, 8, 16, 32)]
    assert parts == sorted(parts, reverse=True)
    assert parts[0] > 0.9 and parts[-1] == 0
    assert part_of(replace(profile, weight_cache_us=0.0), 1) == 0
