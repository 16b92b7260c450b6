"""The protocol finds the times that a simulated device has, whatever its clock and launches do."""

from __future__ import annotations

import pytest

from relational_tensat.cost.cuda.protocol import (
    COLD,
    WARM,
    Clock,
    Observation,
    Settings,
    noise_floor,
    observe,
    steady,
    summarize,
    uncertainty,
)
from relational_tensat.cost.device import Unmeasurable
from tests.cost.cuda.simulator import Kernel, SimulatedGpu

_QUICK = Settings(warm_up_us=2000.0)
#: Warmed up as long as kernels are.
_LONG = Settings()


def _observe(gpu: SimulatedGpu, *kernels: Kernel, settings: Settings = _QUICK) -> list[Observation]:
    observations = observe(kernels, gpu, settings)
    assert all(isinstance(observation, Observation) for observation in observations)
    return [observation for observation in observations if isinstance(observation, Observation)]


def test_times_are_those_of_the_device() -> None:
    (seen,) = _observe(SimulatedGpu(), Kernel(40.0, 70.0))
    assert seen.samples[WARM].median_us == pytest.approx(40.0)
    assert seen.samples[COLD].median_us == pytest.approx(70.0)
    assert (seen.batch, seen.dropped, seen.noise) == (1, 0, 0.0)
    assert seen.samples[WARM].samples == 50


def test_launch_gaps_do_not_count_for_short_kernels() -> None:
    (seen,) = _observe(SimulatedGpu(gap_us=2.5), Kernel(2.0, 4.0))
    assert seen.batch == 40
    assert seen.samples[WARM].median_us == pytest.approx(2.0 + 2.5 / 40)
    middle, long = _observe(SimulatedGpu(gap_us=2.5), Kernel(7.0, 8.0), Kernel(19.0, 20.0))
    assert (middle.batch, long.batch) == (28, 20)  # 200 µs, and the gap's share of each


def test_subjects_are_timed_in_turn_between_two_references() -> None:
    gpu, a, b = SimulatedGpu(), Kernel(30.0, 31.0), Kernel(50.0, 51.0)
    observe([a, b], gpu, Settings(warm_up_us=0.0, window=2, fewest=2, most=2))
    rounds = [(a, WARM, 1), (a, COLD, 1), (b, WARM, 1), (b, COLD, 1)]
    reference = ("reference", "", 1)
    assert gpu.log[-10:] == [reference, *rounds, *rounds, reference]


def test_windows_in_which_the_clock_moved_are_dropped() -> None:
    def slow(seconds: float) -> float:
        return 1.25 if seconds % 0.05 < 0.01 else 1.0  # throttled for a fifth of the time

    (seen,) = _observe(SimulatedGpu(slow=slow, noise=0.002), Kernel(100.0, 100.0))
    assert seen.dropped > 0
    assert seen.samples[WARM].median_us == pytest.approx(100.0, rel=0.01)
    assert seen.reference_us == pytest.approx(500.0, rel=0.01)


def test_a_clock_that_never_rests_gives_no_time() -> None:
    gpu = SimulatedGpu(slow=lambda seconds: 1.0 + 100 * seconds)
    (seen,) = observe([Kernel(100.0, 100.0)], gpu, _QUICK)
    assert isinstance(seen, Unmeasurable)
    assert seen.reason.startswith("the clock moved by over 2% in ")


def test_drift_hits_interleaved_subjects_alike() -> None:
    gpu = SimulatedGpu(slow=lambda seconds: 1.0 + 0.05 * seconds)
    a, b = _observe(gpu, Kernel(100.0, 100.0), Kernel(101.0, 101.0))
    ratio = b.samples[WARM].median_us / a.samples[WARM].median_us
    assert ratio == pytest.approx(1.01, rel=1e-3)


def test_kernels_that_are_timed_alone_share_a_clock() -> None:
    """It is slower while the second is timed: those windows wait until it is as before."""

    def slow(seconds: float) -> float:
        return 1.1 if 0.1 < seconds < 0.15 else 1.0

    gpu, clock, observations = SimulatedGpu(slow=slow), Clock(), []
    clock.learn(gpu.reference_us)
    for kernel in (Kernel(100.0, 100.0), Kernel(101.0, 101.0)) * 2:
        (seen,) = observe([kernel], gpu, _LONG, clock)
        assert isinstance(seen, Observation)
        observations.append(seen)
    assert [observation.samples[WARM].median_us for observation in observations] == pytest.approx(
        [100, 101, 100, 101]
    )
    assert [observation.dropped > 0 for observation in observations] == [False, True, False, False]


def test_a_clock_that_moved_for_good_is_the_new_one() -> None:
    gpu, clock = SimulatedGpu(slow=lambda seconds: 1.0 if seconds < 1.0 else 1.1), Clock()
    observations = [observe([Kernel(100.0, 100.0)], gpu, _LONG, clock)[0] for _ in range(40)]
    assert all(isinstance(observation, Observation) for observation in observations)
    last = observations[-1]
    assert isinstance(last, Observation)
    assert (last.samples[WARM].median_us, last.dropped) == (pytest.approx(110.0), 0)


def test_slow_drift_hits_kernels_that_follow_each_other_alike() -> None:
    gpu, clock = SimulatedGpu(slow=lambda seconds: 1.0 + 0.002 * seconds), Clock()
    a, b = (
        observe([kernel], gpu, _LONG, clock)[0] for kernel in (Kernel(100, 100), Kernel(101, 101))
    )
    assert isinstance(a, Observation) and isinstance(b, Observation)
    ratio = b.samples[WARM].median_us / a.samples[WARM].median_us
    assert ratio == pytest.approx(1.01, rel=1e-3)


def test_noisy_kernels_get_more_samples() -> None:
    (calm,) = _observe(SimulatedGpu(noise=0.001), Kernel(100.0, 100.0))
    settings = Settings(warm_up_us=2000.0, tolerance=0.5)
    (wild,) = _observe(SimulatedGpu(noise=0.3), Kernel(100.0, 100.0), settings=settings)
    assert calm.samples[WARM].samples == 50
    assert wild.samples[WARM].samples > 100


def test_a_subject_that_takes_no_time_does_not_hang() -> None:
    (seen,) = _observe(SimulatedGpu(), Kernel(0.0, 0.0))
    assert seen.samples[WARM].median_us == 0.0


def test_statistics() -> None:
    sample = summarize(range(101))
    assert (sample.p10_us, sample.median_us, sample.p90_us, sample.samples) == (10, 50, 90, 101)
    assert uncertainty([10.0] * 50) == 0.0
    assert uncertainty([9.0, 10.0, 11.0] * 3) > uncertainty([9.0, 10.0, 11.0] * 30)
    assert noise_floor([10.0, 11.0, 12.0], [22.0]) == pytest.approx(1.0)
    assert noise_floor([], [1.0]) == 0.0


def test_steady_windows() -> None:
    windows = [(100, 101), (100, 104), (99, 100), (90, 100)]
    assert steady(windows, 100.0) == [True, False, True, False]
    assert steady([], 100.0) == []


def test_a_clock_knows_what_is_usual_and_forgets_what_was_long_ago() -> None:
    clock = Clock()
    assert clock.usual_us == 0.0
    clock.remember(500.0, 501.0, 550.0)
    assert clock.usual_us == 501.0
    clock.remember(*[550.0] * 200)
    assert clock.usual_us == 550.0
