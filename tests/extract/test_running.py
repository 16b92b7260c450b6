"""HiGHS beside its caller: Ctrl-C is answered though it does not answer."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest

from relational_tensat.base.watch import Watch
from relational_tensat.extract.exact.solve import running
from relational_tensat.extract.exact.solve.running import run_highs


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
    monkeypatch.setattr(running, "GRACE_S", 0.0)


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
    running.GRACE_S = 0.5
    with watch.watching(), pytest.raises(KeyboardInterrupt):
        run_highs(highs(busy), watch)
    busy.stop.set()
