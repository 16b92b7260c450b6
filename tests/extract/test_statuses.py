"""Every way in which HiGHS may end: what is taken from it, and what is reported."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import highspy
import numpy as np
import pytest

from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.base.watch import Watch
from relational_tensat.extract import ExtractionOptions, extract
from relational_tensat.extract.exact.solve.constraints import (
    Columns,
    rows_of_lists,
    stack_rows,
)
from relational_tensat.extract.exact.solve.formulation import formulate
from relational_tensat.extract.exact.solve.mip import cut_and_solve
from relational_tensat.extract.exact.solve.search import Search, SolverOptions
from relational_tensat.extract.exact.solve.solver import MipResult, _read_mip, solve_mip
from tests.extract.instances import build, layered_problem

STATUSES = highspy.HighsModelStatus.__members__


@dataclass
class Ended:
    """HiGHS after a run that ended in this way."""

    status: highspy.HighsModelStatus
    feasible: bool

    def getModelStatus(self) -> highspy.HighsModelStatus:  # noqa: N802 (HiGHS's name)
        return self.status

    def getInfo(self) -> Any:  # noqa: N802
        known = highspy.SolutionStatus.kSolutionStatusFeasible
        return SimpleNamespace(
            primal_solution_status=known if self.feasible else 0,
            objective_function_value=5.0 if self.feasible else math.inf,
            mip_dual_bound=3.0 if self.feasible else -math.inf,
        )

    def getSolution(self) -> Any:  # noqa: N802
        return SimpleNamespace(col_value=[1.0])

    def modelStatusToString(self, status: highspy.HighsModelStatus) -> str:  # noqa: N802
        return str(status.name)


@pytest.mark.parametrize("name", sorted(STATUSES))
@pytest.mark.parametrize("feasible", [True, False])
def test_only_what_was_proven_counts_as_proven(name: str, feasible: bool) -> None:
    result = _read_mip(Ended(STATUSES[name], feasible), False)  # type: ignore[arg-type]
    assert result.proven == (feasible and name == "kOptimal")
    assert (result.values is not None) == feasible
    assert result.infeasible == (name in ("kInfeasible", "kUnboundedOrInfeasible"))
    assert result.bound == ((5.0 if name == "kOptimal" else 3.0) if feasible else -math.inf)


@pytest.mark.parametrize("name", sorted(set(STATUSES) - {"kInfeasible", "kUnboundedOrInfeasible"}))
def test_without_a_solution_the_choice_there_was_stays(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = build([(0, 1.0, []), (0, 2.0, [])], 1)
    search = Search(problem, np.array([1], dtype=np.int32))
    result = MipResult(name, None, -math.inf, False, False, False)
    monkeypatch.setattr(
        "relational_tensat.extract.exact.solve.mip.solve_mip", lambda *_, **__: result
    )
    model = formulate(problem, "auto", 1.0)
    cut_and_solve(search, model, model.columns, model.rows, SolverOptions(Watch(9.0)))
    assert (search.cost_us, search.bound_us) == (2.0, 0.0)
    assert search.notes == [f"HiGHS: {name}"]


def test_a_model_with_a_solution_is_not_infeasible(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = build([(0, 1.0, []), (0, 2.0, [])], 1)
    result = MipResult("infeasible", None, -math.inf, False, True, False)
    monkeypatch.setattr(
        "relational_tensat.extract.exact.solve.mip.solve_mip", lambda *_, **__: result
    )
    model = formulate(problem, "auto", 1.0)
    with pytest.raises(RelationalTensatError, match="infeasible"):
        cut_and_solve(
            Search(problem, np.array([1], dtype=np.int32)),
            model,
            model.columns,
            model.rows,
            SolverOptions(Watch(9.0)),
        )


def test_highs_says_infeasible_and_out_of_time() -> None:
    columns = Columns(np.ones(1), np.zeros(1), np.ones(1), np.ones(1, dtype=np.bool_))
    beyond = rows_of_lists([([0], [1.0])], 2.0, math.inf)
    assert solve_mip(columns, beyond, SolverOptions(Watch(9.0))).infeasible
    problem = layered_problem(layers=3, width=6, seed=1)
    model = formulate(problem, "real", 1.0)
    late = solve_mip(model.columns, model.rows, SolverOptions(Watch(0.0)))
    assert not late.proven
    assert "time" in late.status
    if late.values is None:
        assert late.bound <= extract(problem).cost_us


def test_no_time_says_so() -> None:
    extraction = extract(
        layered_problem(layers=3, width=6, seed=1), ExtractionOptions(time_limit_s=0.0)
    )
    assert extraction.note == "no time was left beyond the greedy methods: nothing is proven"


def test_the_values_are_those_of_the_objective_also_with_a_start() -> None:
    """Where presolve solves it all, HiGHS 1.16.0 returns the start beside the optimum's objective.

    The smallest program found: only column 1 has a cost, and nothing holds it at 0.
    """
    equal = [[(0, 1), (3, 1), (5, 1), (7, -1)], [(4, 1), (6, 1), (8, -1)], [(2, 1), (9, -1)]]
    at_most = [
        *([(5, 1), (8, -1)], [(3, 1), (9, -1)], [(6, 1), (9, -1)]),
        *([(5, -1), (8, 1)], [(3, -1), (6, -1), (9, 1)]),
    ]
    rows = stack_rows([
        rows_of_lists(_split(equal), 0.0, 0.0), rows_of_lists(_split(at_most), -np.inf, 0.0)
    ])  # fmt: skip
    cost = np.zeros(10)
    cost[1] = -1.0
    columns = Columns(cost, np.zeros(10), np.ones(10), np.arange(10) < 7)
    start = np.zeros(10)
    start[[0, 7]] = 1.0
    result = solve_mip(columns, rows, SolverOptions(Watch(10.0)), start=start)
    assert result.proven and result.values is not None
    assert (result.bound, float(cost @ result.values)) == (-1.0, -1.0)


def _split(rows: list[list[tuple[int, int]]]) -> list[tuple[list[int], list[float]]]:
    return [([column for column, _ in row], [float(value) for _, value in row]) for row in rows]
