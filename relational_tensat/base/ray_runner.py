"""The machines of a Ray cluster (the extra ``ray``): ``ray`` begins one here, ``ray:ADDRESS`` uses another.

Ray places the parts and moves what they need. It runs what any client sends, so tokens are asked for unless
``RAY_AUTH_MODE`` says otherwise.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache, partial
from typing import Any, TypeVar

from relational_tensat.base.errors import InputError, MissingDependencyError, UsageError, first_line
from relational_tensat.base.runner import (
    CancelledPart,
    LostError,
    Runner,
    TooLittleMemoryError,
    known_as,
    lending,
)

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")
#: A part begins only on a machine that has the memory it asks for. It asks for at most that share of the
#: largest one: else Ray would wait for a larger one.
_OF_MEMORY = 0.8
#: The resource that machines have as many of as they can measure at a time.
QUIET_CORE = "quiet_core"
_QUIET: dict[str, Any] = {"num_cpus": 0, "resources": {QUIET_CORE: 1}}
#: Else all wait at the first machine whose parts wait for quiet cores: it has CPUs, and begins few more.
_SPREAD: dict[str, Any] = {"scheduling_strategy": "SPREAD"}
#: A cluster that is there answers sooner.
_REACH_S = 10.0
#: So many quiet cores may end with what a part has them compute.
_MOST_ATTEMPTS = 3


def _reach(address: str) -> None:
    """Reach a host and port at once, where the address has these: Ray tries for minutes, and says much.

    Raises:
        OSError: nobody answers.
    """
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), _REACH_S).close()


class RayRunner(Runner):
    """Each part is a task of Ray, which has one CPU."""

    shares_files = False
    lends_quiet_slots = True

    def __init__(self, address: str) -> None:
        try:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            os.environ.setdefault("RAY_AUTH_MODE", "token")
            import ray
        except ImportError as error:
            raise MissingDependencyError(
                "--on ray needs Ray: pip install 'relational-tensat[ray]'"
            ) from error
        self._ray: Any = ray
        self._address = address
        self._is_ours = False
        self._cores = 0
        self._parts: dict[Future[Any], Any] = {}

    @property
    def quiet_slots(self) -> int:
        """As many as the cluster has of the resource ``quiet_core``; had, where all are lost for now.

        Raises:
            UsageError: it never had one.
        """
        cores = self._cores = int(self._ray.cluster_resources().get(QUIET_CORE, 0)) or self._cores
        if not cores:
            raise UsageError(
                f"--on ray:{self._address}: no machine has a quiet core, expected one that began with "
                f"""ray start --resources='{{"{QUIET_CORE}": 1}}'"""
            )
        return cores

    @property
    def slots(self) -> int:
        """Twice as many as there are CPUs: waiting parts make an autoscaler begin machines."""
        return max(2, 2 * int(self._ray.cluster_resources().get("CPU", 1)))

    def __enter__(self) -> RayRunner:
        if not self._ray.is_initialized():
            own: dict[str, Any] = {}
            if not self._address:
                own = {"include_dashboard": False, "resources": {QUIET_CORE: 1}}
            try:
                _reach(self._address)
                self._ray.init(
                    self._address or "local", logging_level="ERROR", log_to_driver=False, **own
                )
            except (
                OSError,
                RuntimeError,
                ValueError,
                self._ray.exceptions.RayError,
            ) as error:
                raise InputError(
                    f"--on ray:{self._address}: Ray cannot be used: {first_line(error)}"
                ) from error
            self._is_ours = True
        self._computed, self._lending = map(self._ray.remote, (_computed, _computed_lending))
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for part in list(self._parts.values()) if kind is not None else ():
            self._ray.cancel(part, force=True)
        if self._is_ours:
            self._ray.shutdown()

    def submit(
        self, compute: Callable[[_Task], _Result], task: _Task, memory_bytes: int = 0
    ) -> Future[_Result]:
        """Hand a task to Ray."""
        return self._submitted(self._computed, compute, task, memory_bytes, {})

    def submit_quiet(
        self, compute: Callable[[_Task], _Result], task: _Task, memory_bytes: int = 0
    ) -> Future[_Result]:
        """Hand a task to Ray that has a quiet core for itself; its machine has CPUs for no other."""
        return self._submitted(self._computed, compute, task, memory_bytes, _QUIET)

    def submit_lending(
        self, compute: Callable[[_Task], _Result], task: _Task, memory_bytes: int = 0
    ) -> Future[_Result]:
        """Hand a task to Ray that may have others computed on quiet cores."""
        return self._submitted(self._lending, compute, task, memory_bytes, _SPREAD)

    def _submitted(
        self,
        computed: Any,
        compute: Callable[[_Task], _Result],
        task: _Task,
        memory_bytes: int,
        needs: dict[str, Any],
    ) -> Future[_Result]:
        memory = {"memory": self._possible(memory_bytes)} if memory_bytes else {}
        # The submitter decides whether to try again: so it is for all runners.
        options = {"max_retries": 0, **memory, **needs}
        part = computed.options(**options).remote(compute, task)
        inner: Future[_Result] = part.future()
        self._parts[inner] = part
        inner.add_done_callback(self._parts.pop)
        return known_as(inner, partial(_error_of, self._ray.exceptions))

    def stop(self) -> None:
        """Press Ctrl-C where parts are computed; those that wait are never begun."""
        for part in list(self._parts.values()):
            self._ray.cancel(part, force=False)  # a Ctrl-C, where it is computed

    def _possible(self, memory_bytes: int) -> int:
        largest = max(node["Resources"].get("memory", 0) for node in self._ray.nodes())
        return int(min(memory_bytes, _OF_MEMORY * largest)) if largest else memory_bytes


# --- on any machine ---


def _error_of(known: Any, error: BaseException) -> BaseException:
    """Return an error as ours.

    Args:
        known: Ray's exceptions.
    """
    if isinstance(error, known.TaskCancelledError | CancelledPart):
        return CancelledPart("cancelled")
    if isinstance(error, known.OutOfMemoryError):
        return TooLittleMemoryError("Ray ended it: the machine's memory did not suffice")
    if isinstance(error, known.RayTaskError):
        cause = error.cause  # what the part raised
        return CancelledPart("cancelled") if isinstance(cause, KeyboardInterrupt) else cause
    if isinstance(error, known.RayError):
        return LostError(f"its process or machine ended: {type(error).__name__}")
    return error


def _computed(compute: Callable[[_Task], _Result], task: _Task) -> _Result:
    return compute(task)


def _computed_lending(compute: Callable[[_Task], _Result], task: _Task) -> _Result:
    with lending(_lent):
        return compute(task)


def _lent(compute: Callable[[_Task], _Result], task: _Task) -> tuple[_Result, float]:
    """Compute something on a quiet core; meanwhile Ray gives the CPU of the part to another one."""
    import ray

    start_s = time.perf_counter()
    for attempt in range(1, _MOST_ATTEMPTS + 1):
        part = _on_quiet_core().remote(compute, task)
        try:
            result, seconds = ray.get(part)
        except ray.exceptions.RayError as error:
            known = _error_of(ray.exceptions, error)
            if isinstance(known, CancelledPart):
                raise KeyboardInterrupt from None
            if not isinstance(known, LostError) or attempt == _MOST_ATTEMPTS:
                raise known from None
        else:
            return result, time.perf_counter() - start_s - seconds
    raise AssertionError  # the last attempt returns or raises


@cache
def _on_quiet_core() -> Any:
    import ray

    return ray.remote(_timed).options(max_retries=0, **_QUIET)


def _timed(compute: Callable[[_Task], _Result], task: _Task) -> tuple[_Result, float]:
    start_s = time.perf_counter()
    return compute(task), time.perf_counter() - start_s
