"""The GPU as a device: each configuration is checked, then timed between looks at its clock.

The protocol's stopwatch is a real one here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from relational_tensat.base.errors import InputError
from relational_tensat.cost.cuda.graph_times import run_heat, time_pair
from relational_tensat.cost.cuda.protocol import WARM, Clock, Observation, Settings, observe
from relational_tensat.cost.cuda.subject import Subject, make_subject
from relational_tensat.cost.device import (
    PROTOCOLS,
    Configuration,
    DeviceKey,
    TimingSample,
    Unmeasurable,
    WholeTiming,
)
from relational_tensat.gpu.calls import BoundCall
from relational_tensat.gpu.cuda.cuda_library import CudaLibrary, Timer
from relational_tensat.gpu.cuda.gpu import RecordedLaunches, record_launches
from relational_tensat.tensor import Array, Graph

#: Stands for the launch that is not timed, among the modes.
_FIRST = "first"


class SubjectStopwatch:
    """Times subjects by CUDA graphs, recorded when they are first asked for.

    A single launch is one, too. cuDNN's functions take 60 to 100 µs before they enqueue anything, and the
    GPU would wait for them: on an H100, ResNet-50's kernels added up to 3,652 µs so, and ran in 1,967.
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


KIND = "cuda"
_NAME_SUFFIX = {"fp32": "", "tf32": ", tf32"}
_NO_KERNEL = TimingSample(median_us=0.0, p10_us=0.0, p90_us=0.0, samples=1)


@dataclass(frozen=True, slots=True)
class Timed:
    """The facts found about one configuration beside its cost.

    Attributes:
        implementations: which library ran each of its calls.
    """

    observation: Observation
    implementations: tuple[str, ...]


class CudaDevice:
    """One NVIDIA GPU.

    The cost of a configuration is its warm median: activations in the L2 cache, as after the operator
    that made them, weights not.

    Args:
        math: how float32 is multiplied, ``fp32`` or ``tf32``; another one is another device.

    Attributes:
        seen: of all that was timed, all that is known: cold times, noise, batches.
    """

    statistic = PROTOCOLS[KIND].statistic

    def __init__(
        self, library: CudaLibrary, math: str = "fp32", settings: Settings | None = None
    ) -> None:
        self._library = library
        self._math = math
        self._settings = settings or Settings()
        self._timer: Timer | None = None
        self._clock = Clock()
        self.timings: dict[Configuration, Timed] = {}
        self.key = DeviceKey(
            kind=KIND,
            name=library.gpu.name + _NAME_SUFFIX[math],
            driver=library.gpu.driver_version,
            libraries={**library.versions(), "math": math},
            protocol=PROTOCOLS[KIND].version,
        )

    def adapted(self, weights_bytes: int) -> CudaDevice:
        """Return the GPU itself: weights are never taken to stay in its caches."""
        return self

    def measure(
        self, configurations: Sequence[Configuration]
    ) -> Iterator[tuple[Configuration, TimingSample | Unmeasurable]]:
        """Measure each configuration when its result is asked for."""
        for configuration in configurations:
            yield configuration, self.measure_one(configuration)

    def measure_one(self, configuration: Configuration) -> TimingSample | Unmeasurable:
        """Return what one configuration takes, or why that cannot be known."""
        try:
            subject = make_subject(
                self._library, configuration, self._math, self._settings.most_batch
            )
        except InputError as error:
            return Unmeasurable(str(error))
        stopwatch = SubjectStopwatch(self._started_timer())
        try:
            if not subject.first:
                return _NO_KERNEL
            (observation,) = observe([subject], stopwatch, self._settings, self._clock)
            if isinstance(observation, Unmeasurable):
                return observation
            self.timings[configuration] = Timed(observation, subject.implementations)
            return observation.samples[WARM]
        finally:
            stopwatch.close()
            subject.close()

    def make_ready(self, graphs: Sequence[Graph]) -> None:
        """Do nothing: each heat records its graphs."""

    def heat(
        self, graphs: Sequence[Graph], inputs: Mapping[str, Array], seed: int
    ) -> list[float] | Unmeasurable:
        """Run graphs in turn, each as one CUDA graph."""
        timer = self._started_timer()
        try:
            return run_heat(self._library, timer, graphs, inputs, self._math, seed)
        except InputError as error:
            return Unmeasurable(str(error))

    def time_whole(
        self, graphs: tuple[Graph, Graph], inputs: Mapping[str, Array], seconds: float
    ) -> WholeTiming | Unmeasurable:
        """Run two graphs, each as one CUDA graph."""
        timer = self._started_timer()
        try:
            return time_pair(self._library, timer, graphs, inputs, self._math, seconds)
        except InputError as error:
            return Unmeasurable(str(error))

    def _started_timer(self) -> Timer:
        """Return events and the fixed product; made, and the clock learned, at the first measurement."""
        if self._timer is None:
            self._timer = Timer(self._library)
            self._clock.learn(self._timer.reference_us)
        return self._timer
