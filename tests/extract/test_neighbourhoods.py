"""Local search with exact neighbourhoods, on small e-graphs against brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench.extract.check import chosen_cost
from bench.extract.known_optimum import planted
from relational_tensat.base.watch import Watch
from relational_tensat.extract import (
    UNUSED,
    ExtractionOptions,
    ExtractionProblem,
    dag_cost_us,
    extract,
)
from relational_tensat.extract.exact import ilp, neighbourhoods
from relational_tensat.extract.exact.ilp import search_reduced
from relational_tensat.extract.exact.neighbourhoods import (
    has_neighbourhoods,
    search_neighbourhoods,
)
from relational_tensat.extract.exact.reduce.reductions.needless import drop_underivable
from relational_tensat.extract.exact.reduce.smaller_problem import Reduced, unreduced
from relational_tensat.extract.exact.relaxation import Relaxation, relax
from relational_tensat.extract.exact.solve.constraints import Rows
from relational_tensat.extract.exact.solve.formulation import Formulation
from relational_tensat.extract.exact.solve.search import Search, SolverOptions
from relational_tensat.extract.greedy.bottom_up import tree_greedy
from relational_tensat.extract.problem import Floats
from tests.extract.instances import brute_force_us, layered_problem, random_problem


def improved(problem: ExtractionProblem, size: int) -> Search:
    """Search neighbourhoods of so many classes from what tree-greedy chooses."""
    problem = drop_underivable(unreduced(problem)).problem
    search = Search(problem, tree_greedy(problem))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbourhoods, "_LEAST_SIZE", size)
        patch.setattr(neighbourhoods, "_SIZE", 0.0)
        search_neighbourhoods(search, search_reduced, SolverOptions(Watch(60.0)))
    return search


def test_a_neighbourhood_of_all_classes_has_the_optimum() -> None:
    for seed in range(20):
        problem = random_problem(seed)
        assert improved(problem, 100).cost_us == pytest.approx(brute_force_us(problem)), seed


def test_what_smaller_ones_find_is_a_graph_and_no_bound() -> None:
    cheaper = 0
    for seed in range(3):
        problem = layered_problem(layers=3, width=4, seed=seed)
        search = improved(problem, 4)
        assert chosen_cost(search.problem, search.best) == pytest.approx(search.cost_us)
        assert search.bound_us == 0.0
        cheaper += search.cost_us < dag_cost_us(problem, tree_greedy(problem)) - 1e-9
        assert search.cost_us >= extract(problem).cost_us - 1e-9, seed
    assert cheaper


@pytest.mark.parametrize("size", [1, 4, 9])
def test_outside_of_a_neighbourhood_there_is_only_the_best_choice(size: int) -> None:
    problem = layered_problem(layers=3, width=4, seed=2)
    search = Search(problem, tree_greedy(problem))
    drawn: list[Reduced] = []

    def look(part: Search, reduced: Reduced, options: SolverOptions) -> None:
        drawn.append(reduced)
        part.raise_bound(part.cost_us * 0.5)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbourhoods, "_LEAST_SIZE", size)
        patch.setattr(neighbourhoods, "_SIZE", 0.0)
        search_neighbourhoods(search, look, SolverOptions(Watch(60.0)))
    for reduced in drawn:
        assert (np.bincount(reduced.problem.node_class) > 1).sum() <= size
        assert set(search.best[search.best != UNUSED]) <= set(reduced.node_origin)
    assert len(drawn) == 8 and any(
        (np.bincount(reduced.problem.node_class) > 1).any() for reduced in drawn
    )
    assert search.bound_us == 0.0


@pytest.mark.parametrize("runs_out", [True, False])
def test_they_are_searched_only_where_the_relaxation_took_all_of_its_time(
    runs_out: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[bool] = []

    def relaxed(
        search: Search, model: Formulation, rows: Rows, options: SolverOptions
    ) -> Relaxation | None:
        relaxation = relax(search, model, rows, options)
        if runs_out:
            monkeypatch.setattr(Watch, "is_over", property(lambda watch: watch is options.watch))
        return relaxation

    def count(
        search: Search, search_part: object, options: SolverOptions, taken: Floats | None
    ) -> None:
        assert taken is not None and ((taken >= 0) & (taken <= 1)).all()
        calls.append(options.is_neighbourhood)

    monkeypatch.setattr(neighbourhoods, "LEAST_CLASSES", 2)
    monkeypatch.setattr(ilp, "relax", relaxed)
    monkeypatch.setattr(neighbourhoods, "search_neighbourhoods", count)
    assert extract(planted(100, 2).problem, ExtractionOptions()).optimal
    assert bool(calls) == runs_out and not any(calls)


def test_a_neighbourhood_has_none_of_its_own() -> None:
    problem = layered_problem(layers=3, width=4, seed=2)
    options = SolverOptions()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbourhoods, "LEAST_CLASSES", 2)
        assert has_neighbourhoods(problem, options)
        assert not has_neighbourhoods(problem, replace(options, is_neighbourhood=True))
