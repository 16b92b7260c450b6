"""The machines of a Ray cluster (the extra ``ray``): ``ray`` begins one here, ``ray:ADDRESS`` uses another.

Ray places the parts and moves what they need. It runs what any client sends, so tokens are asked for unless
``RAY_AUTH_MODE`` says otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from relational_tensat.base.errors import InputError, MissingDependencyError, UsageError, first_line
from relational_tensat.base.runner import (
    CancelledPart,
    LostError,
    Runner,
    TooLittleMemoryError,
    known_as,
)

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")
#: A part is begun on no machine that has less memory than it asks for, and asks for no more than that
#: share of the largest: else Ray would wait for a larger one.
_OF_MEMORY = 0.8
#: The resource that machines have as many of as they can measure at a time.
QUIET_CORE = "quiet_core"


class RayRunner(Runner):
    """Each part is a task of Ray, which has one CPU."""

    shares_files = False

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
        """Twice as many as there are CPUs: what waits makes an autoscaler begin machines."""
        return max(2, 2 * int(self._ray.cluster_resources().get("CPU", 1)))

    def __enter__(self) -> RayRunner:
        if not self._ray.is_initialized():
            own: dict[str, Any] = {}
            if not self._address:
                own = {"include_dashboard": False, "resources": {QUIET_CORE: 1}}
            try:
                self._ray.init(
                    self._address or "local", logging_level="ERROR", log_to_driver=False, **own
                )
            except (
                ConnectionError,
                RuntimeError,
                ValueError,
                self._ray.exceptions.RayError,
            ) as error:
                raise InputError(
                    f"--on ray:{self._address}: Ray cannot be used: {first_line(error)}"
                ) from error
            self._is_ours = True
        self._compute = self._ray.remote(_computed)
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
        return self._submitted(compute, task, memory_bytes, {})

    def submit_quiet(
        self, compute: Callable[[_Task], _Result], task: _Task, memory_bytes: int = 0
    ) -> Future[_Result]:
        """Hand a task to Ray that has a quiet core for itself; its machine has CPUs for no other."""
        needs = {"num_cpus": 0, "resources": {QUIET_CORE: 1}}
        return self._submitted(compute, task, memory_bytes, needs)

    def _submitted(
        self,
        compute: Callable[[_Task], _Result],
        task: _Task,
        memory_bytes: int,
        needs: dict[str, Any],
    ) -> Future[_Result]:
        memory = {"memory": self._possible(memory_bytes)} if memory_bytes else {}
        # Who submits decides whether to try again: so it is for all runners.
        part = self._compute.options(max_retries=0, **memory, **needs).remote(compute, task)
        inner: Future[_Result] = part.future()
        self._parts[inner] = part
        inner.add_done_callback(self._parts.pop)
        return known_as(inner, self._error_of)

    def stop(self) -> None:
        """Press Ctrl-C where parts are computed; those that wait are never begun."""
        for part in list(self._parts.values()):
            self._ray.cancel(part, force=False)  # a Ctrl-C, where it is computed

    def _possible(self, memory_bytes: int) -> int:
        largest = max(node["Resources"].get("memory", 0) for node in self._ray.nodes())
        return int(min(memory_bytes, _OF_MEMORY * largest)) if largest else memory_bytes

    def _error_of(self, error: BaseException) -> BaseException:
        known = self._ray.exceptions
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
