"""The extractors that the bench compares, on e-graphs small enough for brute force."""

from __future__ import annotations

import numpy as np
import pytest

from bench.extract.check import chosen_cost, is_cyclic
from bench.extract.methods import METHODS, Answer, contradictions, ours_without, run_method
from bench.extract.papers import FORMS, solve_paper_form
from relational_tensat.extract import UNUSED
from tests.extract.instances import brute_force_us, build
from tests.extract.small_egraphs import small_problem


@pytest.mark.parametrize("form", FORMS)
def test_the_papers_programs_find_the_optimum_or_a_cycle(form: str) -> None:
    cyclic = 0
    for seed in range(60):
        problem = small_problem(seed)
        extraction = solve_paper_form(problem, form, 60.0)
        assert extraction.proven and extraction.choice is not None, seed
        best = brute_force_us(problem)
        cost = chosen_cost(problem, extraction.choice)
        cyclic += cost is None
        assert extraction.bound <= best + 1e-6, seed
        if cost is not None:
            assert cost == pytest.approx(best), seed
    assert (cyclic > 0) is (form == "none")


def test_algorithm_2_charges_shared_work_once() -> None:
    # Both children of the first e-node depend on class 3 (cost 10): 22 as a tree, 12 as a graph.
    nodes = [(0, 1.0, [1, 2]), (0, 15.0, []), (1, 1.0, [3]), (2, 1.0, [3]), (3, 10.0, [])]
    problem = build(nodes, 4)
    assert run_method(problem, "greedy", 1.0).cost == 15.0
    assert run_method(problem, "algorithm-2", 1.0).cost == 13.0


@pytest.mark.nightly
def test_every_method_answers_and_none_contradicts_another() -> None:
    problem = small_problem(6)
    answers = [run_method(problem, method, 10.0) for method in METHODS]
    best = brute_force_us(problem)
    assert contradictions(answers, best) == []
    for answer in answers:
        assert answer.wall_s > 0
        if answer.status == "optimal":
            assert answer.cost == pytest.approx(best)
    assert answers[-1].method == "ours" and answers[-1].status == "optimal"


def test_contradictions_are_found() -> None:
    high = Answer("a", "optimal", cost=5.0, bound=5.0)
    low = Answer("b", "done", cost=3.0)
    assert contradictions([high, low], None) == ["a bounds by 5.000000 what b has at 3.000000"]
    assert len(contradictions([low], 4.0)) == 1
    assert len(contradictions([high], 4.0)) == 1
    assert contradictions([low], 3.0) == []


def test_a_technique_can_be_left_out() -> None:
    problem = small_problem(13)
    answer = ours_without(problem, "required", 10.0)
    assert (answer.method, answer.status) == ("required", "optimal")
    assert "required" not in answer.dropped


def test_a_cycle_costs_nothing_that_can_be_concluded() -> None:
    problem = build([(0, 1.0, [1]), (1, 1.0, [0]), (1, 5.0, [])], 2)
    assert is_cyclic(problem)
    assert chosen_cost(problem, np.array([0, 1], dtype=np.int32)) is None
    assert chosen_cost(problem, np.array([0, 2], dtype=np.int32)) == 6.0
    with pytest.raises(ValueError, match="class 1 is needed"):
        chosen_cost(problem, np.array([0, UNUSED], dtype=np.int32))
    assert not is_cyclic(build([(0, 1.0, [1]), (1, 1.0, [])], 2))
