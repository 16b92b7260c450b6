"""Microseconds between two events on the GPU's stream."""

from __future__ import annotations

from collections.abc import Callable

from relational_tensat.gpu.cuda.gpu import Gpu


class Events:
    """A pair of events: the begin and the end of what is timed."""

    def __init__(self, gpu: Gpu) -> None:
        self._stream = gpu.stream
        self._begin, self._end = gpu.driver.Event(), gpu.driver.Event()

    def time_us(self, before: Callable[[], None], work: Callable[[], None]) -> float:
        """Return how long ``work`` takes on the GPU.

        Args:
            before: enqueued first and not timed: while it runs, the timed work is enqueued, so that
                the GPU never waits for this process.
        """
        before()
        self._begin.record(self._stream)
        work()
        self._end.record(self._stream)
        self._end.synchronize()
        return float(self._begin.time_till(self._end)) * 1e3
