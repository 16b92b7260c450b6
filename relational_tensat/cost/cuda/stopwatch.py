"""The protocol's stopwatch on a real GPU."""

from __future__ import annotations

from relational_tensat.cost.cuda.protocol import WARM
from relational_tensat.cost.cuda.subject import Subject
from relational_tensat.gpu.cuda.graphs import RecordedLaunches, record_launches
from relational_tensat.gpu.cuda.timing import Timer


class SubjectStopwatch:
    """Times subjects; batches are CUDA graphs, recorded when they are first asked for."""

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._recorded: dict[tuple[int, str, int], RecordedLaunches] = {}

    def time_us(self, subject: Subject, mode: str, batch: int) -> float:
        """Return the microseconds of ``batch`` launches, each on a copy of its own.

        The cache is flushed before; warm, one launch that is not timed then brings the activations
        back. If memory has fewer copies than the batch, they are taken in turn.
        """
        launches = subject.warm if mode == WARM else subject.cold

        def before() -> None:
            self._timer.flush_cache()
            if mode == WARM:
                subject.start(subject.first)

        if batch == 1:
            return self._timer.time_us(before, lambda: subject.start(launches[0]))

        def all_of_them() -> None:
            for index in range(batch):
                subject.start(launches[index % len(launches)])

        key = (id(subject), mode, batch)
        if key not in self._recorded:
            all_of_them()  # once before it is recorded: nothing may be loaded then
            self._recorded[key] = record_launches(subject.library.gpu, all_of_them)
        return self._timer.time_us(before, self._recorded[key].start)

    def reference_us(self) -> float:
        """Return the microseconds of the fixed product."""
        return self._timer.reference_us()

    def close(self) -> None:
        """Give the recorded batches back."""
        for graph in self._recorded.values():
            graph.close()
        self._recorded.clear()
