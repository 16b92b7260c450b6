"""Ctrl-C: raised in Python, remembered in the solver, final the second time."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from relational_tensat.base.deadline import counting_cpu_seconds, now_s
from relational_tensat.base.watch import Guard, Watch

pytestmark = pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals need it"
)


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_outside_a_search_it_is_remembered() -> None:
    before = signal.getsignal(signal.SIGINT)
    ctrl_c = Watch()
    with ctrl_c.watching():
        press()
        assert ctrl_c.happened
        with pytest.raises(KeyboardInterrupt), ctrl_c.raising():
            pytest.fail("the search has begun")
        ctrl_c.survive()
    assert signal.getsignal(signal.SIGINT) is before


def test_within_a_search_it_is_raised_at_once() -> None:
    ctrl_c = Watch()
    with ctrl_c.watching():
        with pytest.raises(KeyboardInterrupt), ctrl_c.raising():
            press()
            pytest.fail("the search goes on")
        ctrl_c.survive()
        assert ctrl_c.happened


def test_within_the_solver_it_is_remembered_also_twice() -> None:
    ctrl_c = Watch()
    with ctrl_c.watching(), ctrl_c.raising():
        with ctrl_c.solving():
            press()
        assert ctrl_c.happened
        with pytest.raises(KeyboardInterrupt), ctrl_c.solving():
            press()
            assert ctrl_c.insisted
        with pytest.raises(KeyboardInterrupt):
            ctrl_c.survive()


def test_the_second_one_is_not_survived() -> None:
    ctrl_c = Watch()
    with ctrl_c.watching():
        press()
        with pytest.raises(KeyboardInterrupt):
            press()
        with pytest.raises(KeyboardInterrupt):
            ctrl_c.survive()


def test_where_there_is_no_best_so_far_the_first_ends_it() -> None:
    ctrl_c = Watch()
    with ctrl_c.watching():
        with pytest.raises(KeyboardInterrupt), ctrl_c.final():
            press()
        with pytest.raises(KeyboardInterrupt):
            ctrl_c.survive()


def test_watching_may_be_nested_in_another_way_to_take_it() -> None:
    outer, inner = Watch(), Watch()
    with outer.watching():
        with inner.watching():
            press()
        assert (outer.happened, inner.happened) == (False, True)
        press()
    assert outer.happened


def test_another_thread_leaves_signals_alone() -> None:
    seen = []

    def watch() -> None:
        with Watch().watching():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=watch)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]


def test_a_guard_waits_for_cpu_seconds_where_limits_are_these() -> None:
    with counting_cpu_seconds():
        began_s = now_s()
        guard = Guard(lambda: None, 0.2)
        with guard.watching():
            time.sleep(0.4)  # by the other clock the limit is over
            assert guard.reason is None
            while guard.reason is None and now_s() < began_s + 10:
                pass
        assert guard.reason == "time"
        assert now_s() >= began_s + 0.2


def test_a_guard_that_defers_remembers_its_limit_and_stops_nothing() -> None:
    stopped: list[bool] = []
    guard = Guard(lambda: stopped.append(True), 0.05)
    assert 0 < guard.seconds_left <= 0.05
    with guard.watching(), guard.deferring():
        began_s = time.monotonic()
        while guard.reason is None and time.monotonic() < began_s + 10:
            time.sleep(0.01)
    assert (guard.reason, stopped, guard.seconds_left) == ("time", [], 0.0)


def test_the_end_of_a_guard_can_be_moved_but_not_beyond_its_limit() -> None:
    for moments_s, limit_s, reason in (
        ((0.01,), 60, "patience"),  # sooner than it waits for
        ((0.01, 0.1), 60, "patience"),
        ((60,), 0.1, "time"),
    ):
        began_s = now_s()
        guard = Guard(lambda: None, limit_s)
        for moment_s in moments_s:
            guard.end_at(began_s + moment_s, "patience")
        with guard.watching():
            while guard.reason is None and now_s() < began_s + 10:
                time.sleep(0.001)
        assert guard.reason == reason
        assert now_s() >= began_s + min(moments_s[-1], limit_s)


def test_a_guard_that_runs_hears_that_its_end_has_moved() -> None:
    guard = Guard(lambda: None, 60)
    with guard.watching():
        time.sleep(0.01)
        guard.end_at(now_s(), "patience")
        began_s = now_s()
        while guard.reason is None and now_s() < began_s + 10:
            time.sleep(0.001)
    assert guard.reason == "patience"
