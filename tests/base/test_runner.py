"""Parts are computed anywhere, in order; a runner of one's own needs one class and a name."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

import pytest

from relational_tensat.base.errors import UsageError
from relational_tensat.base.runner import RUNNERS, LostError, Runner, is_stopping, runner
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.soundness import verify_rules
from relational_tensat.rules.soundness.parallel import verified

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


class Threads(Runner):
    """An example of a runner: threads of this process."""

    slots = 2

    def __init__(self, argument: str) -> None:
        self._pool = ThreadPoolExecutor(int(argument))
        self.tasks: list[object] = []

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def submit(
        self, compute: Callable[[_Task], _Result], task: _Task, memory_bytes: int = 0
    ) -> Future[_Result]:
        self.tasks.append(task)
        return self._pool.submit(compute, task)


def test_a_new_runner_is_one_class(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setitem(RUNNERS, "threads", lambda text: made.append(Threads(text)) or made[-1])
    text = '(rule r (law "l") (from (add ?x ?y)) (to (add ?y ?x)))'
    rules = parse_rules(text, "f")
    results = list(verified(rules, trials=10, shrink=False, on="threads:2"))
    assert [result.verdict for result in results] == verify_rules(rules, trials=10, shrink=False)
    assert [one.tasks for one in made] == [rules]
    with pytest.raises(UsageError, match=r"unknown runner 'thread', .*did you mean 'threads'"):
        runner("thread:2")


def _stops(text: str) -> bool:
    assert text
    return is_stopping()


def test_who_computes_here_is_told_to_stop() -> None:
    with runner("here") as run:
        results = run.map(_stops, ["first", "second"])
        assert not next(results)
        run.stop()
        assert next(results)
    assert not is_stopping()


def _waits(seconds: float) -> tuple[int, bool]:
    """Wait until told to stop, so many seconds at most."""
    end = time.monotonic() + seconds
    while not is_stopping() and time.monotonic() < end:
        time.sleep(0.01)
    return os.getpid(), is_stopping()


def test_other_processes_are_told_to_stop_and_ended() -> None:
    with runner("processes:2") as run:
        results = run.map(_waits, [0.0, 60.0])
        process, was_stopped = next(results)
        assert process != os.getpid() and not was_stopped
        run.stop()
        assert next(results)[1]
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt), runner("processes:2") as run:
        results = run.map(_waits, [0.0, 60.0])
        next(results)
        raise KeyboardInterrupt
    assert time.monotonic() - started < 50
    with (
        pytest.raises(LostError, match="ended before it was done"),
        runner("processes:2") as run,
    ):
        list(run.map(os._exit, [3]))


def test_a_process_that_ends_takes_no_other_with_it() -> None:
    with runner("processes:2") as run:
        other, ended = run.submit(_waits, 1.0), run.submit(os._exit, 3)
        assert isinstance(ended.exception(), LostError)
        again = run.submit(abs, -3)
        assert wait([other, again]).not_done == set()
        assert again.result() == 3 and other.result()[1] is False


def test_what_is_raised_elsewhere_is_raised_here() -> None:
    for text in ("here", "processes:1"):
        with runner(text) as run, pytest.raises(ZeroDivisionError):
            list(run.map(_inverse, [2, 0]))


def _inverse(number: int) -> float:
    return 1 / number


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("processes", "'processes:', expected a number of processes"),
        ("processes:0", "'processes:0', expected a number of processes, 1 or more"),
        ("processes:x", "expected a number"),
        ("here:2", "'here:2', expected no argument"),
    ],
)
def test_runners_that_cannot_be(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        runner(text)
