"""The GPU as a device: each configuration is checked, then timed among some others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relational_tensat.cost.cuda.protocol import (
    WARM,
    Observation,
    Settings,
    Stopwatch,
    observe,
)
from relational_tensat.cost.cuda.stopwatch import SubjectStopwatch
from relational_tensat.cost.cuda.subject import Subject, make_subject
from relational_tensat.cost.device import (
    PROTOCOLS,
    Configuration,
    DeviceKey,
    Sample,
    Unmeasurable,
)
from relational_tensat.errors import InputError
from relational_tensat.gpu.cuda.library import CudaLibrary
from relational_tensat.gpu.cuda.timing import Timer

KIND = "cuda"
#: So many configurations are timed in turn. Their results come together: killing a run loses these.
GROUP = 4
_NO_KERNEL = Sample(median_us=0.0, p10_us=0.0, p90_us=0.0, samples=1)


@dataclass(frozen=True, slots=True)
class Timed:
    """What was found out about one configuration beside its cost.

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
        self.seen: dict[Configuration, Timed] = {}
        self.key = DeviceKey(
            kind=KIND,
            name=library.gpu.name,
            driver=library.gpu.driver_version,
            libraries={**library.versions(), "math": math},
            protocol=PROTOCOLS[KIND].version,
        )

    def measure(
        self, configurations: Sequence[Configuration]
    ) -> Iterator[tuple[Configuration, Sample | Unmeasurable]]:
        """Measure configurations, some at a time, interleaved; hand over each group's results."""
        for start in range(0, len(configurations), GROUP):
            yield from self._measure_group(configurations[start : start + GROUP])

    def _measure_group(
        self, configurations: Sequence[Configuration]
    ) -> list[tuple[Configuration, Sample | Unmeasurable]]:
        results: dict[Configuration, Sample | Unmeasurable] = {}
        subjects: dict[Configuration, Subject] = {}
        stopwatch = SubjectStopwatch(self._clock())
        try:
            for each in configurations:
                try:
                    subject = make_subject(
                        self._library, each, self._math, self._settings.most_batch
                    )
                except InputError as error:
                    results[each] = Unmeasurable(str(error))
                    continue
                if subject.first:
                    subjects[each] = subject
                else:
                    results[each] = _NO_KERNEL
            results |= self._time(subjects, stopwatch)
        finally:
            stopwatch.close()
            for subject in subjects.values():
                subject.close()
        return [(each, results[each]) for each in configurations]

    def _time(
        self, subjects: dict[Configuration, Subject], stopwatch: Stopwatch[Subject]
    ) -> dict[Configuration, Sample | Unmeasurable]:
        found = observe(list(subjects.values()), stopwatch, self._settings) if subjects else []
        results: dict[Configuration, Sample | Unmeasurable] = {}
        for (each, subject), seen in zip(subjects.items(), found, strict=True):
            if isinstance(seen, Observation):
                self.seen[each] = Timed(seen, subject.implementations)
                results[each] = seen.samples[WARM]
            else:
                results[each] = seen
        return results

    def _clock(self) -> Timer:
        """Return events and the fixed product; made at the first measurement."""
        if self._timer is None:
            self._timer = Timer(self._library)
        return self._timer
