"""Costs that are multiples of a unit: bounds are rounded up to what there can be, and no further."""

from __future__ import annotations

import pytest

from relational_tensat.extract import extract
from relational_tensat.extract.exact.solve.search import (
    Search,
    cheaper_below,
    cost_unit_us,
    next_multiple,
)
from relational_tensat.extract.greedy.bottom_up import tree_greedy
from tests.extract.instances import brute_force_us, build
from tests.extract.small_egraphs import small_problem


def test_the_unit_of_costs() -> None:
    assert cost_unit_us(build([(0, 128.0, [1]), (1, 192.0, []), (1, 0.0, [])], 2)) == 64.0
    assert cost_unit_us(build([(0, 1.5, []), (0, 3.0, [])], 1)) == 0.0
    assert cost_unit_us(build([(0, 0.0, [])], 1)) == 0.0
    assert cost_unit_us(build([(0, 2.0**60, [])], 1)) == 0.0


def test_bounds_are_rounded_up_to_a_cost_that_there_can_be() -> None:
    assert next_multiple(129.0, 64.0, 256.0) == 192.0
    assert next_multiple(128.0, 64.0, 256.0) == 128.0
    # A solver's 128.0000001 is 128; without a unit that can be told apart, nothing is known.
    assert next_multiple(128.0000001, 64.0, 256.0) == pytest.approx(128.0)
    assert next_multiple(129.3, 0.0, 256.0) == 129.3
    assert next_multiple(129.3, 1.0, 1e9) == 129.3
    assert cheaper_below(256.0, 64.0) == pytest.approx(192.0, abs=0.1)
    assert cheaper_below(256.0, 0.0) == 256.0


def test_a_bound_within_a_unit_closes_a_search() -> None:
    problem = build([(0, 4.0, [1]), (1, 6.0, [])], 2)
    search = Search(problem, tree_greedy(problem))
    search.unit_us = cost_unit_us(problem)
    search.raise_bound(7.9)
    assert search.bound_us == 8.0 and not search.closed
    search.raise_bound(8.1)
    assert search.closed


def test_the_optimum_in_units_is_that_of_brute_force() -> None:
    counted = 0
    for seed in range(120):
        problem = small_problem(seed)
        extraction = extract(problem)
        assert extraction.optimal and extraction.cost_us == pytest.approx(brute_force_us(problem))
        counted += cost_unit_us(problem) > 0
    assert counted > 30
