"""Kernels are timed interleaved, in windows between two looks at the clock, in batches.

Everything here is arithmetic over a ``CudaStopwatch``: it runs against a simulated device as well.

1. Every subject is warmed up, then timed roughly.
2. Kernels under 20 µs are timed in batches, back to back, so that launch gaps do not count.
3. Samples are taken in windows, all subjects in turn (A B A B, never A A B B), each warm and cold.
4. A fixed product is timed before and after each window; windows in which it moved are dropped.
5. Sampling ends when 50 samples are kept and their median is known to 1 %, or with 200.

Graphs that are compared are subjects of one call. A kernel is a subject alone, between looks at the fixed
product. So its time can be kept as soon as it is known. Kernels share a ``Clock``, and a window counts if
the product took its usual time among all of them.

Samples say their middle, their spread, and how well the middle is known. A GPU's clock cannot be locked by
its users, so it is watched: a fixed product is timed before and after each window of samples. Where it
took another time than it mostly does, the clock was elsewhere, and what was timed in between does not
count.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import numpy as np

from relational_tensat.cost.device import TimingSample, Unmeasurable

#: Of normal samples, interquartile range over standard deviation; and how much wider than a mean's
#: the distribution of a median is.
_IQR_OF_NORMAL, _MEDIAN_OVER_MEAN = 1.349, 1.2533


def summarize(times_us: Sequence[float]) -> TimingSample:
    """Return median, 10th and 90th percentile."""
    p10, median, p90 = np.percentile(times_us, (10, 50, 90)).tolist()
    return TimingSample(median_us=median, p10_us=p10, p90_us=p90, samples=len(times_us))


def uncertainty(times_us: Sequence[float]) -> float:
    """Return the standard error of the median as a fraction of it, estimated from the quartiles."""
    q1, median, q3 = np.percentile(times_us, (25, 50, 75)).tolist()
    deviation = (q3 - q1) / _IQR_OF_NORMAL
    return float(_MEDIAN_OVER_MEAN * deviation / np.sqrt(len(times_us)) / max(median, 1e-12))


def noise_floor(first: Sequence[float], second: Sequence[float]) -> float:
    """Return how much two runs' medians differ, as a fraction: smaller differences are ties."""
    if not first or not second:
        return 0.0
    a, b = float(np.median(first)), float(np.median(second))
    return abs(a - b) / max(min(a, b), 1e-12)


#: How far the reference may be from its median, as a fraction.
TOLERANCE = 0.02
#: How many times of the reference are remembered: some ten kernels' worth of them.
_REMEMBERED = 128
#: How many are taken before anything is timed.
_FIRST = 64


class Clock:
    """The fixed product's latest times, between those of other kernels.

    Kernels that are timed one after the other share a clock: their times can be compared because all
    were taken while the product took the same. A clock that has moved for good is the usual one
    once it was seen in half of what is remembered.
    """

    def __init__(self) -> None:
        self._times_us: deque[float] = deque(maxlen=_REMEMBERED)

    def learn(self, reference_us: Callable[[], float]) -> None:
        """Time the fixed product often enough to know what it usually takes."""
        self.remember(*(reference_us() for _ in range(_FIRST)))

    def remember(self, *times_us: float) -> None:
        """Add times of the fixed product."""
        self._times_us.extend(times_us)

    @property
    def usual_us(self) -> float:
        """The median of what is remembered; 0.0 before anything is."""
        return float(np.median(self._times_us)) if self._times_us else 0.0


def steady(
    references_us: Sequence[tuple[float, float]], usual_us: float, tolerance: float = TOLERANCE
) -> list[bool]:
    """Return which windows count: both references lie within the tolerance of the usual time."""
    return [
        all(abs(time_us - usual_us) <= tolerance * usual_us for time_us in window)
        for window in references_us
    ]


Subject = TypeVar("Subject")
Timed = TypeVar("Timed", contravariant=True)

#: Whether what a sample reads lies in the L2 cache: all but the weights, or nothing.
WARM, COLD = MODES = ("warm", "cold")


class CudaStopwatch(Protocol[Timed]):
    """Times work on a device."""

    def time_us(self, subject: Timed, mode: str, batch: int) -> float:
        """Return the microseconds of ``batch`` launches, one behind the other, all together.

        Args:
            mode: one of ``MODES``: the state of the cache when they begin.
        """

    def reference_us(self) -> float:
        """Return the microseconds of a fixed product: how fast the clock is."""


#: Batches before the first sample at most.
_MOST_WARM_UPS = 100


@dataclass(frozen=True, slots=True)
class Settings:
    """The figures of the protocol; another value of one of them is another protocol.

    Attributes:
        short_us: quicker kernels are timed in batches.
        batch_us: how long a batch takes, about.
        fewest_batch, most_batch: launches in a batch.
        warm_up_us: how long each subject runs before it is timed.
        window: samples of each subject, in each mode, between two looks at the clock.
        fewest, most: samples that are kept, of each subject in each mode.
        precision: the median's standard error, as a fraction, that is good enough.
        tolerance: how far the reference may move, as a fraction.
        most_windows: sampling ends then, whether or not windows were kept.
        modes: the modes in which each subject is timed.
    """

    short_us: float = 20.0
    batch_us: float = 200.0
    fewest_batch: int = 20
    most_batch: int = 40
    warm_up_us: float = 25_000.0
    window: int = 10
    fewest: int = 50
    most: int = 200
    precision: float = 0.01
    tolerance: float = TOLERANCE
    most_windows: int = 60
    modes: tuple[str, ...] = MODES


@dataclass(frozen=True, slots=True)
class Observation:
    """The facts found about one subject.

    Attributes:
        samples: by mode.
        times_us: by mode, the samples themselves in the order in which they were taken: those of
            subjects that were timed together belong to the same rounds.
        batch: launches a sample.
        noise: how much the medians of the even and the odd windows differ, as a fraction.
        windows, dropped: how many were taken, and how many of them the clock moved in.
        reference_us: the fixed product's median, in the windows that were kept.
    """

    samples: dict[str, TimingSample]
    times_us: dict[str, tuple[float, ...]]
    batch: int
    noise: float
    windows: int
    dropped: int
    reference_us: float


@dataclass(slots=True)
class _Windows(Generic[Subject]):
    """The times so far: per window the reference before and after, and the samples."""

    clock: Clock
    tolerance: float
    references_us: list[tuple[float, float]] = field(default_factory=list)
    #: Per window, subject and mode: microseconds of one launch.
    times_us: list[dict[tuple[int, str], list[float]]] = field(default_factory=list)

    def add(
        self, reference_us: tuple[float, float], times_us: dict[tuple[int, str], list[float]]
    ) -> None:
        self.references_us.append(reference_us)
        self.times_us.append(times_us)
        self.clock.remember(*reference_us)

    def counted(self) -> list[bool]:
        return steady(self.references_us, self.clock.usual_us, self.tolerance)

    def kept(self, key: tuple[int, str]) -> list[list[float]]:
        """Return the samples of one subject in one mode, window by window."""
        return [
            window[key] for window, good in zip(self.times_us, self.counted(), strict=True) if good
        ]


def observe(
    subjects: Sequence[Subject],
    stopwatch: CudaStopwatch[Subject],
    settings: Settings | None = None,
    clock: Clock | None = None,
) -> list[Observation | Unmeasurable]:
    """Time subjects, interleaved.

    Args:
        clock: the fixed product's times so far; None if nothing else is to be compared with.

    Returns:
        One per subject; ``Unmeasurable`` where the clock moved in too many windows.
    """
    chosen_settings = settings or Settings()
    batches = [_prepare(subject, stopwatch, chosen_settings) for subject in subjects]
    windows: _Windows[Subject] = _Windows(clock or Clock(), chosen_settings.tolerance)
    while len(windows.times_us) < chosen_settings.most_windows and not _enough(
        windows, len(subjects), chosen_settings
    ):
        before_us = stopwatch.reference_us()
        times = _sample(subjects, batches, stopwatch, chosen_settings)
        windows.add((before_us, stopwatch.reference_us()), times)
    return [
        _conclude(windows, index, batches[index], chosen_settings) for index in range(len(subjects))
    ]


def _prepare(subject: Subject, stopwatch: CudaStopwatch[Subject], settings: Settings) -> int:
    """Warm a subject up; return how many launches make a sample of it.

    Work between the timed parts, as emptying the cache, warms it up, too: short kernels need not fill the
    time alone.
    """
    spent_us, took_us = 0.0, 1.0
    for _ in range(_MOST_WARM_UPS):
        took_us = stopwatch.time_us(subject, settings.modes[0], settings.fewest_batch)
        spent_us += took_us
        if spent_us >= settings.warm_up_us or not took_us:
            break
    each_us = took_us / settings.fewest_batch
    if each_us >= settings.short_us:
        return 1
    batch = int(settings.batch_us / max(each_us, 1e-3))
    return min(max(batch, settings.fewest_batch), settings.most_batch)


def _sample(
    subjects: Sequence[Subject],
    batches: Sequence[int],
    stopwatch: CudaStopwatch[Subject],
    settings: Settings,
) -> dict[tuple[int, str], list[float]]:
    """Take one window: every subject in every mode, in turn, several times."""
    times: dict[tuple[int, str], list[float]] = {
        (index, mode): [] for index in range(len(subjects)) for mode in settings.modes
    }
    for _ in range(settings.window):
        for index, mode in times:
            batch = batches[index]
            total_us = stopwatch.time_us(subjects[index], mode, batch)
            times[index, mode].append(total_us / batch)
    return times


def _enough(windows: _Windows[Subject], count: int, settings: Settings) -> bool:
    """Whether all subjects have samples enough in all modes."""
    for index in range(count):
        for mode in settings.modes:
            times = _flat(windows.kept((index, mode)))
            if len(times) < settings.fewest:
                return False
            if len(times) < settings.most and uncertainty(times) > settings.precision:
                return False
    return True


def _conclude(
    windows: _Windows[Subject], index: int, batch: int, settings: Settings
) -> Observation | Unmeasurable:
    samples_us = {mode: windows.kept((index, mode)) for mode in settings.modes}
    first = samples_us[settings.modes[0]]
    total = len(windows.times_us)
    dropped = total - len(first)
    if len(_flat(first)) < settings.fewest:
        percent = f"{settings.tolerance:.0%}"
        return Unmeasurable(f"the clock moved by over {percent} in {dropped} of {total} windows")
    references = [
        time_us
        for window, good in zip(windows.references_us, windows.counted(), strict=True)
        if good
        for time_us in window
    ]
    return Observation(
        samples={mode: summarize(_flat(times)) for mode, times in samples_us.items()},
        times_us={mode: tuple(_flat(times)) for mode, times in samples_us.items()},
        batch=batch,
        noise=noise_floor(_flat(first[::2]), _flat(first[1::2])),
        windows=total,
        dropped=dropped,
        reference_us=summarize(references).median_us,
    )


def _flat(windows: Sequence[Sequence[float]]) -> list[float]:
    return [time_us for window in windows for time_us in window]
