"""The protocol's stopwatch on a real GPU."""

from __future__ import annotations

from relational_tensat.cost.cuda.protocol import WARM
from relational_tensat.cost.cuda.subject import Subject
from relational_tensat.gpu.calls import BoundCall
from relational_tensat.gpu.cuda.cuda_library import Timer
from relational_tensat.gpu.cuda.gpu import RecordedLaunches, record_launches

#: Stands for the launch that is not timed, among the modes.
_FIRST = "first"


class SubjectStopwatch:
    """Times subjects by CUDA graphs, recorded when they are first asked for.

    A single launch is one, too: cuDNN's functions take 60 to 100 µs before they enqueue anything, for which
    the GPU would wait (on an H100, ResNet-50's kernels added up to 3,652 µs so, and ran in 1,967).
    """

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._recorded: dict[tuple[int, str, int], RecordedLaunches] = {}

    def time_us(self, subject: Subject, mode: str, batch: int) -> float:
        """Return the microseconds of ``batch`` launches, each on a copy of its own.

        The cache is flushed before; warm, one launch that is not timed then brings the activations
        back. If memory has fewer copies than the batch, they are taken in turn.
        """
        launches = subject.warm if mode == WARM else subject.cold
        turns = [launches[index % len(launches)] for index in range(batch)]
        first = self._of(subject, _FIRST, [subject.first])
        timed = self._of(subject, mode, turns)

        def before() -> None:
            self._timer.flush_cache()
            if mode == WARM:
                first.start()

        return self._timer.time_us(before, timed.start)

    def reference_us(self) -> float:
        """Return the microseconds of the fixed product."""
        return self._timer.reference_us()

    def _of(self, subject: Subject, mode: str, turns: list[list[BoundCall]]) -> RecordedLaunches:
        """Return launches as one CUDA graph."""
        key = (id(subject), mode, len(turns))
        if key not in self._recorded:

            def all_of_them() -> None:
                for calls in turns:
                    subject.start(calls)

            all_of_them()  # once before it is recorded: nothing may be loaded then
            self._recorded[key] = record_launches(subject.library.gpu, all_of_them)
        return self._recorded[key]

    def close(self) -> None:
        """Give the recorded batches back."""
        for graph in self._recorded.values():
            graph.close()
        self._recorded.clear()
