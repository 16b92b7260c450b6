"""Every extractor against brute force, on 1,000 small e-graphs of every kind."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings

from bench.extract.check import chosen_cost
from relational_tensat.extract import (
    Extraction,
    ExtractionOptions,
    ExtractionProblem,
    dag_cost_us,
    extract,
)
from tests.extract.instances import brute_force_us
from tests.extract.small_egraphs import (
    FEATURES,
    cheapest_choice,
    egraphs,
    features,
    small_problem,
)
from tests.tiers import nightly

COUNT = 1_000
BLOCKS = 4


def assert_checked(problem: ExtractionProblem, extraction: Extraction) -> None:
    """Cost and acyclicity, re-computed from the choice by other code."""
    assert chosen_cost(problem, extraction.choice) == pytest.approx(extraction.cost_us)


@pytest.mark.parametrize("block", [0, *map(nightly, range(1, BLOCKS))])
def test_the_optimum_is_found_and_proven(block: int) -> None:
    for seed in range(block, COUNT, BLOCKS):
        problem = small_problem(seed)
        extraction = extract(problem)
        assert extraction.cost_us == pytest.approx(brute_force_us(problem)), seed
        assert extraction.optimal and extraction.gap == 0.0, seed
        assert extraction.bound_us == extraction.cost_us, seed
        assert_checked(problem, extraction)


def test_the_e_graphs_are_of_every_kind() -> None:
    seeds = range(0, COUNT, 5)
    counted = Counter(feature for seed in seeds for feature in features(small_problem(seed)))
    assert set(counted) == set(FEATURES)
    assert min(counted.values()) > len(seeds) / 5
    assert max(counted[feature] for feature in ("cyclic", "several roots", "original")) < len(seeds)


@pytest.mark.parametrize("cycles", ["real", "int", "none"])
def test_the_papers_forms_find_it(cycles: str) -> None:
    solved = 0
    for seed in range(100):
        problem = small_problem(seed)
        extraction = extract(problem, ExtractionOptions(ilp_cycles=cycles))
        solved += "HiGHS" in extraction.note
        assert extraction.cost_us == pytest.approx(brute_force_us(problem)), seed
        assert extraction.optimal, seed
        assert_checked(problem, extraction)
    assert solved > 30


def test_greedy_choices_are_graphs_and_not_below_the_optimum() -> None:
    above = Counter[str]()
    for seed in range(200):
        problem = small_problem(seed)
        optimum = brute_force_us(problem)
        tree, dag = (
            extract(problem, ExtractionOptions("greedy")),
            extract(problem, ExtractionOptions("greedy-dag")),
        )
        for extraction in (tree, dag):
            assert_checked(problem, extraction)
            assert extraction.cost_us >= optimum - 1e-9, seed
            above[extraction.method] += extraction.cost_us > optimum + 1e-9
        assert dag.cost_us <= tree.cost_us, seed
        if problem.has_original:
            assert dag.cost_us <= dag_cost_us(problem, problem.original), seed
    assert 0 < above["greedy-dag"] < above["greedy"]  # they can miss it, and the better one less


@settings(max_examples=60, deadline=None)
@given(problem=egraphs(max_classes=4))
def test_brute_force_is_right(problem: ExtractionProblem) -> None:
    assert brute_force_us(problem) == pytest.approx(cheapest_choice(problem)[0])
