"""The time limit holds within every long step: each asks often whether it may go on."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from relational_tensat.base.deadline import Budget, BudgetSpentError, Check, OutOfTimeError
from relational_tensat.base.watch import Watch
from relational_tensat.extract import ExtractionOptions, ExtractionProblem, extract, is_acyclic
from relational_tensat.extract.exact.landmarks import LandmarkCuts
from relational_tensat.extract.exact.reduce.declaration import REDUCTIONS, ReductionStage, in_stage
from relational_tensat.extract.exact.reduce.reductions.detours import drop_detours
from relational_tensat.extract.exact.reduce.reductions.dominance import pass_through
from relational_tensat.extract.exact.reduce.reductions.inline import merge_single_users
from relational_tensat.extract.exact.reduce.reductions.needless import drop_by_required, drop_dear
from relational_tensat.extract.exact.reduce.rounds import pin_required, reduce
from relational_tensat.extract.exact.reduce.smaller_problem import Reduced, unreduced
from relational_tensat.extract.exact.solve.search import SolverOptions
from relational_tensat.extract.greedy import dag as greedy_dag
from relational_tensat.extract.greedy.bottom_up import DagDeriver
from relational_tensat.extract.greedy.cover import CoverGreedy
from tests.extract.instances import layered_problem

PROBLEM = layered_problem(layers=5, width=6, seed=3)
CHOSEN = (np.ones(PROBLEM.n_nodes) / 2, np.ones(PROBLEM.n_classes))

STEPS: dict[str, Callable[[ExtractionProblem, Check], object]] = {
    "bottom-up": lambda problem, check: DagDeriver(problem, check=check).derive(problem.cost_us),
    "covering": lambda problem, check: CoverGreedy(problem, check).derive(),
    "detours": lambda problem, check: drop_detours(unreduced(problem), check),
    "single-users": lambda problem, check: merge_single_users(unreduced(problem), check),
    "pass-through": lambda problem, check: pass_through(unreduced(problem), check),
    "required": lambda problem, check: drop_by_required(unreduced(problem), check),
    "dear": lambda problem, check: drop_dear(unreduced(problem), check),
    "pinning": lambda problem, check: pin_required(unreduced(problem), check),
    "reduce": lambda problem, check: reduce(unreduced(problem), check),
    "landmarks": lambda problem, check: LandmarkCuts(problem, check).violated(*CHOSEN),
}


@pytest.mark.parametrize("name", sorted(STEPS))
def test_a_long_step_asks_and_ends(name: str) -> None:
    readings = itertools.count()

    def out_of_time() -> None:
        next(readings)
        raise OutOfTimeError("over")

    with pytest.raises(OutOfTimeError):
        STEPS[name](PROBLEM, out_of_time)
    assert next(readings) == 1


class FakeClock:
    """A clock that goes on by one second each time it is looked at."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        """Return the time, which is later each time."""
        self.now += 1.0
        return self.now


@pytest.mark.parametrize("limit_s", [50, 400, 1_500, 4_000, 12_000])
def test_whatever_step_it_is_in_the_search_ends(
    limit_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    monkeypatch.setattr("relational_tensat.base.deadline.time", clock)
    monkeypatch.setattr(greedy_dag, "LARGEST_UNLIMITED", 0)
    extraction = extract(PROBLEM, ExtractionOptions(time_limit_s=limit_s))
    assert is_acyclic(PROBLEM, extraction.choice)
    # After the limit, every step asks once more at most on its way out.
    assert clock.now < limit_s + 100
    assert extraction.bound_us <= extraction.cost_us


def endless(reduced: Reduced, check: Check) -> Reduced:
    """Reduce nothing, for ever."""
    while True:
        check()


LONG = [
    member.name for member in (*in_stage(ReductionStage.COSTLY), *in_stage(ReductionStage.PINNED))
]


@pytest.mark.parametrize("name", [*LONG, "pinning"])
def test_what_reductions_do_not_end_leaves_time_for_a_bound_and_the_optimum(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = layered_problem(layers=1, width=4, seed=3)
    expected = extract(problem)
    clock = FakeClock()
    monkeypatch.setattr("relational_tensat.base.deadline.time", clock)
    if name in LONG:
        monkeypatch.setitem(REDUCTIONS, name, replace(REDUCTIONS[name], run=endless))
    else:
        monkeypatch.setattr("relational_tensat.extract.exact.reduce.rounds.pin_required", endless)
    extraction = extract(problem, ExtractionOptions(time_limit_s=100_000))
    assert extraction.optimal
    assert extraction.cost_us == pytest.approx(expected.cost_us)


def test_a_budget_is_a_part_of_the_time_and_a_share_a_part_of_a_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = FakeClock()
    monkeypatch.setattr("relational_tensat.base.deadline.time", clock)
    readings = itertools.count()
    budget = Budget(lambda: next(readings), 100.0)
    share = budget.share(0.5)
    with pytest.raises(BudgetSpentError):
        while True:
            share()
    assert 45 < clock.now < 55
    budget()
    with pytest.raises(BudgetSpentError):
        while True:
            budget()
    assert 95 < clock.now < 105
    assert next(readings) > 0  # the limit above it is asked each time


def test_a_check_raises_when_the_time_is_over() -> None:
    with pytest.raises(OutOfTimeError):
        SolverOptions(Watch(0.0)).check()
