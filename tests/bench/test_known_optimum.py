"""The planted optimum is the optimum, and neither greedy nor the plain relaxation sees it."""

from __future__ import annotations

import numpy as np
import pytest

from bench.extract.check import is_cyclic
from bench.extract.known_optimum import KINDS, planted
from relational_tensat.base.watch import Watch
from relational_tensat.extract import ExtractionOptions, extract
from relational_tensat.extract.exact.solve.formulation import formulate
from relational_tensat.extract.exact.solve.search import SolverOptions
from relational_tensat.extract.exact.solve.solver import LinearProgram
from tests.extract.instances import brute_force_us


@pytest.mark.parametrize("kind", KINDS)
def test_brute_force_finds_the_planted_optimum(kind: str) -> None:
    for seed in range(12):
        made = planted(1, seed, kind)  # the planted choice, shared zones, and no more decoys
        assert brute_force_us(made.problem) == made.optimum, seed


@pytest.mark.parametrize("kind", KINDS)
def test_the_solver_finds_the_planted_optimum(kind: str) -> None:
    solved = [(extract(made.problem), made) for made in (planted(90, s, kind) for s in range(4))]
    assert all(extraction.optimal for extraction, _ in solved)
    for extraction, made in solved:
        assert extraction.cost_us == pytest.approx(made.optimum)
    greedy = [
        extract(made.problem, ExtractionOptions("greedy")).cost_us > made.optimum
        for _, made in solved
    ]
    assert any(greedy)


def test_e_graphs_have_the_size_and_are_cyclic() -> None:
    for kind in KINDS:
        problem = planted(2_000, 1, kind).problem
        assert 2_000 <= problem.n_nodes <= 2_020
        assert is_cyclic(problem)
        assert int(np.bincount(problem.node_class).min()) >= 1


def test_equal_arguments_give_equal_e_graphs() -> None:
    first, second = planted(300, 5), planted(300, 5)
    assert first.optimum == second.optimum
    assert np.array_equal(first.problem.child_idx, second.problem.child_idx)
    assert not np.array_equal(first.problem.cost_us, planted(300, 6).problem.cost_us[:300])


@pytest.mark.parametrize(("kind", "tight"), [("prices", True), ("zones", False), ("rings", False)])
def test_the_plain_relaxation_is_exact_without_zones_only(kind: str, tight: bool) -> None:
    made = planted(200, 2, kind)
    model = formulate(made.problem, "none", 1.0)
    solved = LinearProgram(model.columns, model.rows, SolverOptions(Watch(60.0))).solve()
    assert solved is not None
    assert solved.objective <= made.optimum + 1e-6
    assert (solved.objective >= made.optimum - 1e-6) is tight
