"""HiGHS beside its caller: Ctrl-C and limits are answered though it does not answer."""

from __future__ import annotations

import math
import os
import signal
import threading
from typing import Any

import highspy
import numpy as np
import pytest

from relational_tensat.base.deadline import OutOfTimeError
from relational_tensat.base.watch import Watch
from relational_tensat.extract.exact.solve import solver
from relational_tensat.extract.exact.solve.constraints import Columns, rows_of_lists
from relational_tensat.extract.exact.solve.formulation import formulate
from relational_tensat.extract.exact.solve.search import SolverOptions
from relational_tensat.extract.exact.solve.solver import (
    LinearProgram,
    is_free,
    run_highs,
    solve_mip,
)
from tests.extract.instances import layered_problem


class Busy:
    """Stands for HiGHS: runs until it is interrupted, and calls nobody back."""

    def __init__(self, pressed: int = 0) -> None:
        self.stop = threading.Event()
        self.runs = 0
        self._pressed = pressed

    def run(self) -> None:
        for _ in range(self._pressed):
            os.kill(os.getpid(), signal.SIGINT)
        self.stop.wait(30)
        self.runs += 1


def highs(busy: Busy) -> Any:
    return busy


@pytest.fixture(autouse=True)
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "GRACE_S", 0.0)


def test_what_ends_has_ended() -> None:
    busy = Busy()
    busy.stop.set()
    assert run_highs(highs(busy), Watch())
    assert busy.runs == 1


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals need it"
)
def test_what_does_not_answer_is_left_and_waited_for_before_the_next_run() -> None:
    busy, watch = Busy(pressed=1), Watch()
    with watch.watching():
        assert not run_highs(highs(busy), watch)
    assert watch.happened
    assert busy.runs == 0
    following = Busy()
    following.stop.set()
    threading.Timer(0.2, busy.stop.set).start()
    assert run_highs(highs(following), Watch())
    assert (busy.runs, following.runs) == (1, 1)


def test_what_does_not_end_in_time_is_left_and_nothing_runs_beside_it() -> None:
    busy, following = Busy(), Busy()
    assert not run_highs(highs(busy), Watch(0.05))
    assert busy.runs == 0
    assert not is_free(Watch(0.0))
    assert not run_highs(highs(following), Watch(0.0))
    columns = Columns(np.ones(1), np.zeros(1), np.ones(1), np.ones(1, dtype=np.bool_))
    rows = rows_of_lists([([0], [1.0])], 1.0, 1.0)
    late = solve_mip(columns, rows, SolverOptions(Watch(0.0)))
    assert (late.values, late.bound, late.proven) == (None, -math.inf, False)
    assert late.status == "time limit reached"
    with pytest.raises(OutOfTimeError):
        LinearProgram(columns, rows, SolverOptions(Watch(0.0)))
    busy.stop.set()
    assert solve_mip(columns, rows, SolverOptions(Watch(60.0))).proven
    assert (busy.runs, following.runs) == (1, 0)


def test_what_was_reported_before_it_was_left_is_kept() -> None:
    """The callbacks of a real run that is never said to have ended: its point and bound are the answer."""
    problem = layered_problem(layers=3, width=4, seed=2)
    model = formulate(problem, "cuts", 1.0)
    run = solver._run

    def never_ends(loaded: highspy.Highs, options: SolverOptions) -> bool:
        run(loaded, options)
        return False

    listened: list[tuple[float, float]] = []
    expected = solve_mip(model.columns, model.rows, SolverOptions())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solver, "_run", never_ends)
        left = solve_mip(
            model.columns, model.rows, SolverOptions(), progress=lambda *two: listened.append(two)
        )
    assert listened and not left.proven and left.values is not None
    assert left.bound == listened[-1][1] <= expected.bound + 1e-6
    assert model.columns.cost @ left.values == pytest.approx(listened[-1][0])


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals need it"
)
def test_the_second_ctrl_c_ends_the_program() -> None:
    """Two signals that come at once are one: the second is sent when the first has arrived."""
    busy, watch = Busy(pressed=1), Watch()

    def insist() -> None:
        while not watch.happened:
            pass
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=insist).start()
    solver.GRACE_S = 0.5
    with watch.watching(), pytest.raises(KeyboardInterrupt):
        run_highs(highs(busy), watch)
    busy.stop.set()
