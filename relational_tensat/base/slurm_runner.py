"""The machines of a Slurm cluster, by submitit (the extra ``slurm``): each part is a job.

``slurm`` has 64 jobs at a time, ``slurm:N`` N. ``slurm:local`` runs them here, without Slurm. Variables of
``sbatch`` (``SBATCH_PARTITION``, ``SBATCH_ACCOUNT``) say where jobs go. The user's cache folder has their
files, so all machines must have it.
"""

from __future__ import annotations

import logging
import math
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from relational_tensat.base.errors import InputError, MissingDependencyError, UsageError, first_line
from relational_tensat.base.folders import PrivateFolder, user_cache
from relational_tensat.base.runner import CancelledPart, LostError, Runner, TooLittleMemoryError

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")
_MOST_JOBS = 64
_LOCAL, _LOCAL_JOBS = "local", 2
_PAUSE_S = 0.2
#: So long a file may take from one machine to another.
_QUEUE_ASKED_EVERY_S = 10.0
_MOST_MINUTES = 24 * 60


def slurm(argument: str) -> Runner:
    """Return the runner of ``slurm``, ``slurm:N``, or ``slurm:local``.

    Raises:
        UsageError: it is no number, or there is no Slurm here.
        MissingDependencyError: submitit is not installed.
    """
    if argument not in ("", _LOCAL) and not (argument.isdecimal() and int(argument)):
        raise UsageError(
            f"runner 'slurm:{argument}', expected a number of jobs, 1 or more, or local"
        )
    try:
        import submitit
    except ImportError as error:
        raise MissingDependencyError(
            "--on slurm needs submitit: pip install 'relational-tensat[slurm]'"
        ) from error
    # It warns on standard output, where results go; a job whose state it cannot tell is asked for here.
    logging.getLogger("submitit").setLevel(logging.ERROR)
    if argument != _LOCAL and shutil.which("sbatch") is None:
        raise UsageError(
            "--on slurm: there is no sbatch here, expected a machine of a Slurm cluster"
        )
    jobs = _LOCAL_JOBS if argument == _LOCAL else int(argument or _MOST_JOBS)
    return _Jobs(submitit, _LOCAL if argument == _LOCAL else "slurm", jobs)


class _Jobs(Runner):
    """Jobs; a thread looks which are done."""

    def __init__(self, submitit: Any, cluster: str, number: int) -> None:
        self._submitit, self._cluster, self._number = submitit, cluster, number
        self._running: dict[Future[Any], Any] = {}
        self._lock = threading.Lock()
        self._is_cancelled = False

    @property
    def slots(self) -> int:
        return self._number

    def __enter__(self) -> _Jobs:
        user_cache().mkdir(parents=True, exist_ok=True)
        self._folder = PrivateFolder(user_cache())
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.stop()
        self._ended.set()
        self._thread.join()
        self._folder.close()

    def submit(
        self, compute: Callable[[_Task], _Result], task: _Task, memory_bytes: int = 0
    ) -> Future[_Result]:
        return self._submitted(compute, task, memory_bytes, is_alone=False)

    def _submitted(
        self,
        compute: Callable[[_Task], _Result],
        task: _Task,
        memory_bytes: int,
        *,
        is_alone: bool,
    ) -> Future[_Result]:
        memory_gb = math.ceil(memory_bytes / 2**30) or None
        # One's own for each job: an executor keeps what it was told, and sbatch knows no false --exclusive.
        executor = self._submitit.AutoExecutor(self._folder.path, cluster=self._cluster)
        executor.update_parameters(
            timeout_min=_MOST_MINUTES, slurm_exclusive=is_alone or None, mem_gb=memory_gb
        )
        future: Future[_Result] = Future()
        future.set_running_or_notify_cancel()
        try:
            job = executor.submit(compute, task)
        except self._submitit.core.utils.FailedJobError as error:
            raise InputError(f"--on slurm: a job was refused: {first_line(error)}") from None
        with self._lock:
            self._running[future] = job
        return future

    @property
    def quiet_slots(self) -> int:
        """All of them, each on a machine of its own; without Slurm this machine has one."""
        return 1 if self._cluster == _LOCAL else self._number

    def submit_quiet(
        self, compute: Callable[[_Task], _Result], task: _Task, memory_bytes: int = 0
    ) -> Future[_Result]:
        """Submit a job that has its machine for itself."""
        return self._submitted(compute, task, memory_bytes, is_alone=True)

    def stop(self) -> None:
        self._is_cancelled = True
        with self._lock:
            jobs = list(self._running.values())
        for job in jobs:
            job.cancel()

    def _look(self) -> None:
        asked_s, unqueued = time.monotonic(), set[Future[Any]]()
        while not self._ended.is_set():
            with self._lock:
                done = [(future, job) for future, job in self._running.items() if job.done()]
                for future, _ in done:
                    del self._running[future]
            for future, job in done:
                self._settle(future, job)
            if self._cluster != _LOCAL and time.monotonic() > asked_s + _QUEUE_ASKED_EVERY_S:
                unqueued = self._lost(unqueued)
                asked_s = time.monotonic()
            time.sleep(_PAUSE_S)

    def _lost(self, unqueued: set[Future[Any]]) -> set[Future[Any]]:
        """Give up jobs that were not in the queue before and are not now; return those that are not.

        A cluster without accounting (sacct) tells submitit nothing of a job that was killed.
        """
        with self._lock:
            running = dict(self._running)
        line = ["squeue", "--me", "--noheader", "--format=%i"]
        found = subprocess.run(line, capture_output=True, text=True, check=False)
        if found.returncode:
            return unqueued  # Slurm is busy: next time
        queue = set(found.stdout.split())
        gone = {future for future, job in running.items() if job.job_id not in queue}
        for future in gone & unqueued:
            with self._lock:
                self._running.pop(future, None)
            future.set_exception(
                CancelledPart("cancelled")
                if self._is_cancelled
                else LostError(f"job {running[future].job_id} ended: it left no result")
            )
        return gone - unqueued

    def _settle(self, future: Future[Any], job: Any) -> None:
        known = self._submitit.core.utils
        try:
            future.set_result(job.result())
        except known.FailedJobError as error:  # what the part raised, as text
            future.set_exception(error)
        except known.UncompletedJobError as error:
            if self._is_cancelled:
                future.set_exception(CancelledPart("cancelled"))
            elif "OUT_OF_ME" in str(job.state):
                future.set_exception(
                    TooLittleMemoryError("Slurm ended it: its memory did not suffice")
                )
            else:
                future.set_exception(
                    LostError(f"job {job.job_id} ended: {str(error).splitlines()[0]}")
                )
        except BaseException as error:  # what the part raised: for who waits
            future.set_exception(error)
