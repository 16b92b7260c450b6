"""Hypothesis searches for an e-graph whose optimum a technique loses: each alone, and all but each.

The names come from the registry, so that none can be added without being searched. To search long:
``RELATIONAL_TENSAT_EXAMPLES=2000 python -m pytest --hypothesis-profile=random FILE``.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import assume, given, settings

from bench.extract.check import chosen_cost
from relational_tensat.extract import (
    TECHNIQUES,
    UNUSED,
    ExtractionProblem,
    extract,
)
from relational_tensat.extract.exact.reduce.declaration import REDUCTIONS
from relational_tensat.extract.exact.reduce.smaller_problem import Reduced, unreduced
from tests.extract.instances import brute_force_us, build
from tests.extract.small_egraphs import cheapest_choice, egraphs

EXAMPLES = int(os.environ.get("RELATIONAL_TENSAT_EXAMPLES", "12"))


def assert_found(problem: ExtractionProblem, without: list[str]) -> None:
    extraction = extract(problem, disable=without)
    assert extraction.cost_us == pytest.approx(brute_force_us(problem))
    assert extraction.optimal
    assert chosen_cost(problem, extraction.choice) == pytest.approx(extraction.cost_us)
    assert not set(extraction.reductions) & set(without)


@pytest.mark.parametrize("name", TECHNIQUES)
@settings(max_examples=EXAMPLES, deadline=None)
@given(problem=egraphs())
def test_the_optimum_is_found_with_one_alone(name: str, problem: ExtractionProblem) -> None:
    assert_found(problem, [other for other in TECHNIQUES if other != name])


@pytest.mark.parametrize("name", TECHNIQUES)
@settings(max_examples=EXAMPLES, deadline=None)
@given(problem=egraphs())
def test_the_optimum_is_found_with_all_but_one(name: str, problem: ExtractionProblem) -> None:
    assert_found(problem, [name])


#: What such searches have found, repaired since.
FOUND = (
    ([(1, 1.0, []), (0, 0.0, [1]), (1, 0.0, [0])], 2),  # an e-node below the root needs the root
    ([(0, 1.0, []), (0, 0.0, [0]), (1, 0.0, [1])], 2),  # a step from a class to itself
)


@pytest.mark.parametrize("name", TECHNIQUES)
def test_what_was_found_stays_repaired(name: str) -> None:
    for nodes, n_classes in FOUND:
        problem = build(nodes, n_classes)
        assert_found(problem, [other for other in TECHNIQUES if other != name])
        assert_found(problem, [name])


@pytest.mark.parametrize("name", sorted(REDUCTIONS))
@settings(max_examples=2 * EXAMPLES, deadline=None)
@given(problem=egraphs(max_classes=5))
def test_a_reduction_keeps_an_optimum_that_lifts(name: str, problem: ExtractionProblem) -> None:
    before = REDUCTIONS["underivable"].run(unreduced(problem))  # which others presume
    after = REDUCTIONS[name].run(before)
    best = brute_force_us(problem)
    assert brute_force_us(after.problem) == pytest.approx(best)
    assume(after.problem.n_nodes <= 12)  # for plain enumeration
    cost, choice = cheapest_choice(after.problem)
    assert cost == pytest.approx(best)
    assert chosen_cost(problem, lifted(after, choice)) == pytest.approx(best)


def lifted(after: Reduced, choice: dict[int, int]) -> np.ndarray:
    """Return the choice of the first e-graph that a choice of the reduced one stands for."""
    chosen = np.full(after.problem.n_classes, UNUSED, dtype=np.int32)
    for klass, node in choice.items():
        chosen[klass] = node
    return after.lift(chosen)
