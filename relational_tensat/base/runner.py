"""Runners: where the parts of a computation are computed, here or by other processes.

A runner is a context manager: the processes that it began end with it.

>>> with runner("here") as run:
...     list(run.map(abs, [3, -4]))
[3, 4]

``processes:N`` is N other processes of this machine, ``ray`` and ``slurm`` are those of a cluster. They
leave Ctrl-C to this one: it ends them, where it is raised. A caller that catches it calls ``stop``; then
``is_stopping`` is true in all parts, and a cluster's parts are cancelled.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from relational_tensat.base.errors import NoSolutionError, UsageError
from relational_tensat.base.lazy import Registry
from relational_tensat.base.watch import ignore_ctrl_c

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing.connection import Connection
    from multiprocessing.synchronize import Event

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


class LostError(NoSolutionError):
    """A process ended before its part was computed, or its machine did: elsewhere it may be."""


class TooLittleMemoryError(LostError):
    """The system ended a process, for it took more memory than it had."""


class Runner:
    """Computes parts that have nothing to do with each other; one's own has ``submit``.

    Attributes:
        shares_files: whether a path names the same file there as here.
        lends_quiet_slots: whether it has ``submit_lending``.
    """

    shares_files = True
    lends_quiet_slots = False

    @property
    def slots(self) -> int:
        """How many parts it takes at a time."""
        return 1

    def __enter__(self) -> Runner:
        """Begin."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End all that was begun; at once, where an exception is raised."""

    def submit(
        self, compute: Callable[[_Task], _Result], task: _Task, memory_bytes: int = 0
    ) -> Future[_Result]:
        """Begin a part, where there is a slot; return its result in the future.

        Args:
            compute: where tasks go to other processes, a function of a module, or a ``partial`` of one.
            memory_bytes: the memory that it may need; 0 if unknown. A place that shares memory out goes by
                it.

        Returns:
            A future. It raises what ``compute`` does, or ``LostError``.
        """
        raise NotImplementedError

    @property
    def quiet_slots(self) -> int:
        """How many parts it takes at a time that nothing else disturbs."""
        return 1

    def submit_quiet(
        self, compute: Callable[[_Task], _Result], task: _Task, memory_bytes: int = 0
    ) -> Future[_Result]:
        """Begin a part that measures times, where there is a quiet slot; else as ``submit``.

        On one machine, one such part at a time, and no other beside it, is all that quiet takes.
        """
        return self.submit(compute, task, memory_bytes)

    def submit_lending(
        self, compute: Callable[[_Task], _Result], task: _Task, memory_bytes: int = 0
    ) -> Future[_Result]:
        """Begin a part in any slot, with quiet ones for what it has computed ``undisturbed``.

        While it waits for those, its slot is another part's.
        """
        raise NotImplementedError

    def stop(self) -> None:
        """Let ``is_stopping`` be true wherever parts are computed, or cancel them."""

    def map(self, compute: Callable[[_Task], _Result], tasks: Sequence[_Task]) -> Iterator[_Result]:
        """Yield the result of each task, in their order.

        Raises:
            LostError: a process ended before it was done.
        """
        left = enumerate(tasks)
        running: dict[Future[_Result], int] = {}
        early: dict[int, _Result] = {}
        place = 0
        while place < len(tasks):
            for number, task in islice(left, max(0, self.slots - len(running))):
                running[self.submit(compute, task)] = number
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                early[running.pop(future)] = future.result()
            while place in early:
                yield early.pop(place)
                place += 1


#: The kinds of runners; each is made of the text after its name: ``2``, of ``processes:2``.
RUNNERS: Registry[Callable[[str], Runner]] = Registry(
    "runner",
    {
        "here": f"{__name__}:Here",
        "processes": f"{__name__}:processes",
        "ray": "relational_tensat.base.ray_runner:RayRunner",
        "slurm": "relational_tensat.base.slurm_runner:slurm",
    },
)


def runner(text: str) -> Runner:
    """Return the runner that a text names: ``here``, ``processes:N``, ``ray:ADDRESS``.

    Raises:
        UsageError: there is no such runner; names the nearest.
        MissingDependencyError: it needs a package that is not installed.
    """
    name, _, argument = text.partition(":")
    return RUNNERS[name](argument)


def known_as(
    inner: Future[_Result], error_of: Callable[[BaseException], BaseException]
) -> Future[_Result]:
    """Return a future with the same result, whose errors are ours."""
    outer: Future[_Result] = Future()
    outer.set_running_or_notify_cancel()

    def hand_on(done: Future[_Result]) -> None:
        error = CancelledPart() if done.cancelled() else done.exception()
        if error is None:
            outer.set_result(done.result())
        else:
            outer.set_exception(error_of(error))

    inner.add_done_callback(hand_on)
    return outer


class CancelledPart(NoSolutionError):  # noqa: N818  # nothing is wrong with it
    """A part was cancelled, as ``stop`` asked for."""


#: In a process of a runner, the flag that tells it to stop.
_stop: threading.Event | Event = threading.Event()


def is_stopping() -> bool:
    """Whether the part that is being computed is to end with what it has."""
    return _stop.is_set()


#: In a part, the function that computes a call in a quiet slot. None: this process computes it.
_Lender = Callable[[Callable[[Any], Any], Any], tuple[Any, float]]
_lender: _Lender | None = None


def undisturbed(compute: Callable[[_Task], _Result], task: _Task) -> tuple[_Result, float]:
    """Compute what measures times, within a part: in a quiet slot, where its runner lends one.

    Returns:
        The result, and the seconds that passed beside computing it.

    Raises:
        LostError: the slot's process ended, again and again.
        KeyboardInterrupt: the part was cancelled.
    """
    return (compute(task), 0.0) if _lender is None else _lender(compute, task)


def is_lent() -> bool:
    """Whether ``undisturbed`` computes elsewhere."""
    return _lender is not None


@contextmanager
def lending(lender: _Lender) -> Iterator[None]:
    """Let a runner's quiet slots compute what parts in the block ask for."""
    global _lender
    before, _lender = _lender, lender
    try:
        yield
    finally:
        _lender = before


class Here(Runner):
    """Computes in this process, when a part is submitted."""

    def __init__(self, argument: str = "") -> None:
        if argument:
            raise UsageError(f"runner 'here:{argument}', expected no argument")

    def __enter__(self) -> Here:
        global _stop  # this part's own, be it within another runner's
        self._outer, _stop = _stop, threading.Event()
        return self

    def __exit__(self, *_: object) -> None:
        global _stop
        _stop = self._outer

    def submit(
        self, compute: Callable[[_Task], _Result], task: _Task, memory_bytes: int = 0
    ) -> Future[_Result]:
        """Compute it."""
        future: Future[_Result] = Future()
        try:
            future.set_result(compute(task))
        except Exception as error:  # a Ctrl-C is raised
            future.set_exception(error)
        return future

    def stop(self) -> None:
        """Tell the part that is being computed."""
        _stop.set()


def spread_over(number: int) -> str:
    """Return the name of what computes in so many processes; in one, this one does."""
    return "here" if number == 1 else f"processes:{number}"


def processes(argument: str) -> Runner:
    """Return a runner of so many other processes."""
    if not argument.isdecimal() or int(argument) < 1:
        raise UsageError(
            f"runner 'processes:{argument}', expected a number of processes, 1 or more"
        )
    return _Processes(int(argument))


class _Processes(Runner):
    """Pools of one process each: where one ends, the others go on, and it is known what it computed."""

    def __init__(self, number: int) -> None:
        self._pools: list[ProcessPoolExecutor | None] = [None] * number
        self._running: list[Future[Any] | None] = [None] * number
        self._stop: Event | None = None
        self._lifeline: Connection | None = None

    @property
    def slots(self) -> int:
        return len(self._pools)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._lifeline is not None:
            if kind is not None:
                self._lifeline.close()
            for pool in filter(None, self._pools):
                pool.shutdown(cancel_futures=True)
            self._lifeline.close()

    def submit(
        self, compute: Callable[[_Task], _Result], task: _Task, memory_bytes: int = 0
    ) -> Future[_Result]:
        from concurrent.futures.process import BrokenProcessPool

        slot = next(i for i, each in enumerate(self._running) if each is None or each.done())
        pool = self._pools[slot]
        try:
            inner = None if pool is None else pool.submit(compute, task)
        except BrokenProcessPool:  # it ended while nothing was computed
            inner = None
        if inner is None:
            pool = self._pools[slot] = self._begun()
            inner = pool.submit(compute, task)

        def error_of(error: BaseException) -> BaseException:
            if not isinstance(error, BrokenProcessPool):
                return error
            self._pools[slot] = None
            return LostError(
                "another process ended before it was done; perhaps memory did not suffice, or a library "
                "crashed"
            )

        future = known_as(inner, error_of)
        self._running[slot] = future
        return future

    def stop(self) -> None:
        if self._stop is not None:
            self._stop.set()

    def _begun(self) -> ProcessPoolExecutor:
        """Return a process; it begins when it is needed first."""
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        context = multiprocessing.get_context("spawn")  # no fork: DuckDB has threads
        if self._stop is None:
            self._stop, (self._end, self._lifeline) = context.Event(), context.Pipe(duplex=False)
        return ProcessPoolExecutor(1, context, initializer=_begin, initargs=(self._stop, self._end))


# --- in the other processes ---


def _begin(stop: Event, end: Connection) -> None:
    global _stop  # one for each process
    os.setpgid(0, 0)  # a terminal's Ctrl-C goes to the process that began this one
    ignore_ctrl_c()
    _stop = stop
    threading.Thread(target=_end_with, args=(end,), daemon=True).start()


def _end_with(end: Connection) -> None:
    """End this process when the other end is closed, be it by the end of that process."""
    end.poll(None)
    os._exit(1)
