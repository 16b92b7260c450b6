from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from relational_tensat.extract import ExtractionOptions, dag_cost_us, extract, is_acyclic
from relational_tensat.extract.exact.reduce.declaration import REDUCTIONS
from relational_tensat.extract.exact.reduce.smaller_problem import unreduced
from relational_tensat.extract.greedy.bottom_up import DagDeriver
from relational_tensat.extract.greedy.cover import CoverGreedy, covers
from tests.extract.instances import brute_force_us, layered_problem, random_problem


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_covers_are_acyclic_choices(seed: int) -> None:
    problem = REDUCTIONS["underivable"].run(unreduced(random_problem(seed))).problem
    best = brute_force_us(problem)
    for choice in covers(problem, seed):
        assert is_acyclic(problem, choice)
        assert dag_cost_us(problem, choice) >= best - 1e-9


def test_covers_are_repeatable() -> None:
    problem = layered_problem(layers=2, width=4, seed=0)
    first = [choice.tolist() for choice in covers(problem, 3)]
    assert first == [choice.tolist() for choice in covers(problem, 3)]


def test_merges_are_found_that_bottom_up_greedy_misses() -> None:
    problem = layered_problem(layers=3, width=4, seed=3)
    bottom_up = dag_cost_us(problem, DagDeriver(problem).derive(problem.cost_us))
    covered = dag_cost_us(problem, CoverGreedy(problem).derive())
    assert covered < bottom_up
    assert extract(problem, ExtractionOptions("greedy-dag")).cost_us <= covered
