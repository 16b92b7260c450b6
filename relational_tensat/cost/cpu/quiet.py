"""Whether anybody disturbs the processor: a small matrix product that should take as long as ever.

A thread's CPU time does not count while others have the processor, but it suffers from what they do to the
caches, and far more from a second thread on the same core: on a core of two hardware threads everything
takes 1.5 to 2 times as long. Virtual machines often do not report that their processors share a core.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

#: So much slower than at its best, the reference says that the processor is disturbed.
DISTURBED = 1.08
#: Between two looks at a disturbed processor.
_WAIT_S = 0.0003
#: For so long the reference runs at first, to learn how long it takes undisturbed.
_LEARNING_S = 0.5
#: The best is a low percentile of the last readings: now and then a clock runs faster for a moment.
_BEST_PERCENTILE = 1
_READINGS = 20_000
#: The percentile is recomputed after so many readings.
_RENEWED_AFTER = 500


def thread_us(function: Callable[[], object]) -> float:
    """Return the CPU time of this thread that one call takes, in microseconds."""
    start = time.thread_time_ns()
    function()
    return (time.thread_time_ns() - start) / 1e3


def wall_us(function: Callable[[], object]) -> float:
    """Return the wall time that one call takes, in microseconds."""
    start = time.perf_counter_ns()
    function()
    return (time.perf_counter_ns() - start) / 1e3


#: Times one call, in microseconds.
Clock: TypeAlias = Callable[[Callable[[], object]], float]


def clock_of(threads: int) -> Clock:
    """Return what times work of so many threads: one's CPU time does not have what others do."""
    return thread_us if threads == 1 else wall_us


class QuietWatch(Protocol):
    """Measures how disturbed the processor is: ``Quiet``, but for tests."""

    def slowdown(self) -> float:
        """Return how many times as long as undisturbed things take now."""


@dataclass(frozen=True, slots=True)
class Taken:
    """One sample: microseconds, and how slow the processor was right before and right after."""

    time_us: float
    before: float
    after: float

    @property
    def is_undisturbed(self) -> bool:
        """Whether nobody disturbed it, as far as can be known."""
        return max(self.before, self.after) <= DISTURBED

    @property
    def is_steady(self) -> bool:
        """Whether the processor was as disturbed after as before, so that it can be corrected."""
        return max(self.before, self.after) <= DISTURBED * min(self.before, self.after)

    @property
    def corrected_us(self) -> float:
        """The time divided by how slow the processor was."""
        return self.time_us / max((self.before + self.after) / 2, 1.0)


def take(
    function: Callable[[], object],
    prepare: Callable[[], object],
    watch: QuietWatch,
    clock: Clock | None = None,
) -> Taken:
    """Time a function once, right after what prepares it; by the thread's CPU time unless given a clock."""
    before = watch.slowdown()
    prepare()
    time_us = (clock or thread_us)(function)
    return Taken(time_us, before, watch.slowdown())


def is_quiet(watch: QuietWatch, give_up: float) -> bool:
    """Wait until the processor is undisturbed; False at a time of ``time.perf_counter``."""
    while watch.slowdown() > DISTURBED:
        if time.perf_counter() >= give_up:
            return False
        time.sleep(_WAIT_S)
    return True


class Memory(Protocol):
    """What remembers from one process to the next: ``cost.cpu.baseline``."""

    def best_us(self) -> float:
        """Return the best time of the reference that is known, infinity where none is."""

    def keep(self, best_us: float) -> None:
        """Remember a time if it is better."""


class Quiet:
    """Watches the processor by means of a reference.

    Args:
        reference: takes some tens of microseconds; run at once, for half a second.
        memory: what other processes have seen, and will see.
    """

    def __init__(self, reference: Callable[[], object], memory: Memory) -> None:
        self._reference = reference
        self._memory = memory
        self._readings: deque[float] = deque(maxlen=_READINGS)
        self._best_us = memory.best_us()
        self._new = 0
        start_s = time.perf_counter()
        while time.perf_counter() - start_s < _LEARNING_S or not self._readings:
            self._readings.append(thread_us(reference))
        self._renew()

    def slowdown(self) -> float:
        """Return how many times as long as undisturbed the reference takes now."""
        self._reference()  # its own data back into the caches
        time_us = thread_us(self._reference)
        self._readings.append(time_us)
        self._new += 1
        if self._new >= _RENEWED_AFTER:
            self._renew()
        return time_us / self._best_us

    def _renew(self) -> None:
        best_us = float(np.percentile(self._readings, _BEST_PERCENTILE))
        self._memory.keep(best_us)
        self._best_us = min(best_us, self._memory.best_us())
        self._new = 0
