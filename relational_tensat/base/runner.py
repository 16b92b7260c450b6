"""Runners: where the parts of a computation are computed, here or by other processes.

A runner is a context manager: what it began ends with it.

>>> with runner("here") as run:
...     list(run.map(abs, [3, -4]))
[3, 4]

``processes:N`` is N other processes. They leave Ctrl-C to this one: it ends them, where it is raised.
Who catches it instead calls ``stop``; then ``is_stopping`` is true wherever a part is computed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from relational_tensat.base.errors import NoSolutionError, UsageError
from relational_tensat.base.lazy import Registry
from relational_tensat.base.watch import ignore_ctrl_c

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing.connection import Connection
    from multiprocessing.synchronize import Event

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


class Runner(Protocol):
    """Computes parts that have nothing to do with each other."""

    def __enter__(self) -> Runner:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End all that was begun; at once, where an exception is raised."""

    def map(self, compute: Callable[[_Task], _Result], tasks: Sequence[_Task]) -> Iterator[_Result]:
        """Yield the result of each task, in their order.

        Args:
            compute: where tasks go to other processes, a function of a module, or a ``partial`` of one.

        Raises:
            NoSolutionError: a process ended before it was done.
        """

    def each(
        self, compute: Callable[[_Task], _Result], tasks: Sequence[_Task]
    ) -> Iterator[tuple[int, _Result]]:
        """Yield the place of each task, and its result, when it is done; else as ``map``."""

    def stop(self) -> None:
        """Let ``is_stopping`` be true wherever parts are computed."""


#: What runners there are; each is made of what follows its name: ``2``, of ``processes:2``.
RUNNERS: Registry[Callable[[str], Runner]] = Registry(
    "runner", {"here": f"{__name__}:Here", "processes": f"{__name__}:processes"}
)


def runner(text: str) -> Runner:
    """Return the runner that a text names: ``here``, or ``processes:N``.

    Raises:
        UsageError: there is no such runner; names the nearest.
    """
    name, _, argument = text.partition(":")
    return RUNNERS[name](argument)


_ENDED = (
    "another process ended before it was done; perhaps memory did not suffice, or a library crashed"
)
#: In a process of a runner, what tells that it is to stop.
_stop: threading.Event | Event = threading.Event()


def is_stopping() -> bool:
    """Whether the part that is being computed is to end with what it has."""
    return _stop.is_set()


class Here:
    """Computes in this process, a part when its result is asked for."""

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

    def map(self, compute: Callable[[_Task], _Result], tasks: Sequence[_Task]) -> Iterator[_Result]:
        """Compute one after the other."""
        yield from map(compute, tasks)

    def each(
        self, compute: Callable[[_Task], _Result], tasks: Sequence[_Task]
    ) -> Iterator[tuple[int, _Result]]:
        """Compute one after the other."""
        yield from enumerate(map(compute, tasks))

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


class _Processes:
    def __init__(self, number: int) -> None:
        self._number = number
        self._pool: ProcessPoolExecutor | None = None
        self._stop: Event | None = None
        self._lifeline: Connection | None = None

    def __enter__(self) -> _Processes:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._pool is not None and self._lifeline is not None:
            if kind is not None:
                self._lifeline.close()
            self._pool.shutdown(cancel_futures=True)
            self._lifeline.close()

    def map(self, compute: Callable[[_Task], _Result], tasks: Sequence[_Task]) -> Iterator[_Result]:
        from concurrent.futures.process import BrokenProcessPool

        # a few tasks at a time: little is waited for at the end, little is sent about
        chunk = max(1, min(8, len(tasks) // (4 * self._number)))
        try:
            yield from self._begun().map(compute, tasks, chunksize=chunk)
        except BrokenProcessPool as error:
            raise NoSolutionError(_ENDED) from error

    def each(
        self, compute: Callable[[_Task], _Result], tasks: Sequence[_Task]
    ) -> Iterator[tuple[int, _Result]]:
        from concurrent.futures import as_completed
        from concurrent.futures.process import BrokenProcessPool

        try:
            pool = self._begun()
            places = {pool.submit(compute, task): place for place, task in enumerate(tasks)}
            for future in as_completed(places):
                yield places[future], future.result()
        except BrokenProcessPool as error:
            raise NoSolutionError(_ENDED) from error

    def stop(self) -> None:
        if self._stop is not None:
            self._stop.set()

    def _begun(self) -> ProcessPoolExecutor:
        """Return the processes; they begin when they are needed first."""
        if self._pool is None:
            import multiprocessing
            from concurrent.futures import ProcessPoolExecutor

            context = multiprocessing.get_context("spawn")  # no fork: DuckDB has threads
            self._stop, (end, self._lifeline) = context.Event(), context.Pipe(duplex=False)
            self._pool = ProcessPoolExecutor(
                self._number, context, initializer=_begin, initargs=(self._stop, end)
            )
        return self._pool


# --- in the other processes ---


def _begin(stop: Event, end: Connection) -> None:
    global _stop  # one for each process
    ignore_ctrl_c()
    _stop = stop
    threading.Thread(target=_end_with, args=(end,), daemon=True).start()


def _end_with(end: Connection) -> None:
    """End this process when the other end is closed, be it by the end of that process."""
    end.poll(None)
    os._exit(1)
