"""How samples become times; the clock and the disturbance are made up."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from itertools import chain, cycle, repeat

import numpy as np
import pytest

from relational_tensat.cost.cpu import quiet
from relational_tensat.cost.cpu.quiet import Quiet, Taken, is_quiet
from relational_tensat.cost.cpu.samples import (
    SAMPLES,
    WARM_UP_RUNS,
    Evictor,
    Pair,
    counted_us,
    difference,
    differences_us,
    percentiles_us,
)


class _Timed:
    """A function that takes as long as it says, one time after the other."""

    def __init__(self, times_us: Iterator[float]) -> None:
        self.times_us = times_us
        self.runs = 0

    def __call__(self) -> None:
        self.runs += 1


class _Watch:
    """A processor that is as slow as it says."""

    def __init__(self, slowdowns: Iterator[float]) -> None:
        self.slowdowns = slowdowns

    def slowdown(self) -> float:
        return next(self.slowdowns)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(function: Callable[[], object]) -> float:
        assert isinstance(function, _Timed)
        function()
        return next(function.times_us)

    monkeypatch.setattr(quiet, "thread_us", taken)


def _pair(longer: _Timed, shorter: _Timed) -> Pair:
    return Pair(longer, shorter, lambda: None)


def test_percentiles_of_thirty_undisturbed_samples_of_each() -> None:
    longer, shorter = _Timed(iter(range(100, 200))), _Timed(repeat(20.0))
    sample = difference(_pair(longer, shorter), 4, _Watch(repeat(1.0)), 60.0)
    expected = (np.percentile(np.arange(100, 100 + SAMPLES), (10, 50, 90)) - 20) / 4
    assert (sample.p10_us, sample.median_us, sample.p90_us) == pytest.approx(tuple(expected))
    assert sample.samples == SAMPLES == 30
    assert longer.runs == shorter.runs == 2 * SAMPLES + WARM_UP_RUNS  # each once right before


def test_the_caches_are_prepared_before_each_sample() -> None:
    """The function runs once more, its data may be anywhere; then the caches; then it is timed."""
    longer, runs = _Timed(repeat(9.0)), []
    pair = Pair(longer, _Timed(repeat(1.0)), lambda: runs.append(longer.runs))
    difference(pair, 1, _Watch(repeat(1.0)), 60.0)
    assert len(runs) == 2 * SAMPLES
    assert runs[:4:2] == [WARM_UP_RUNS + 1, WARM_UP_RUNS + 3]


def test_disturbed_samples_do_not_count_where_there_are_enough_undisturbed_ones() -> None:
    quiet_ones = [Taken(10.0 + number, 1.0, 1.05) for number in range(5)]
    disturbed = [Taken(8.0, 2.0, 2.0)] * 90
    assert counted_us(quiet_ones + disturbed) == [[10.0, 11.0, 12.0, 13.0, 14.0]]
    (corrected,) = counted_us(quiet_ones[1:] + disturbed[:1])
    assert corrected == pytest.approx([11.0, 12.0, 13.0, 14.0, 4.0], rel=0.03)


def test_where_one_function_is_corrected_so_is_the_other() -> None:
    """Memory suffers less than the reference: undisturbed 50 µs less corrected 40 of 80 would be 10."""
    longer = [Taken(80.0, 2.0, 2.0)] * 30
    shorter = [Taken(60.0, 2.0, 2.0)] * 30 + [Taken(50.0, 1.0, 1.0)] * 5
    assert counted_us(longer, shorter) == [[40.0] * 30, [30.0] * 30 + [50.0] * 5]
    assert [percentiles[0] for percentiles in percentiles_us(longer, shorter)] == [40.0, 30.0]
    assert percentiles_us(shorter)[0][0] == 50.0


def test_a_sample_in_which_the_disturbance_changed_cannot_be_corrected() -> None:
    (counted,) = counted_us([Taken(10.0, 1.0, 2.0), Taken(10.0, 2.0, 1.9), Taken(9.0, 0.9, 0.9)])
    assert counted == [pytest.approx(10.0 / 1.95), 9.0]
    assert counted_us([Taken(30.0, 1.0, 2.0)]) == [[20.0]]  # as well as can be


def test_while_patience_lasts_a_disturbed_processor_is_not_sampled() -> None:
    longer, shorter = _Timed(repeat(30.0)), _Timed(repeat(10.0))
    watch = _Watch(chain(repeat(2.0, 10), repeat(1.0)))
    sample = difference(_pair(longer, shorter), 1, watch, 60.0)
    assert sample.p10_us == sample.p90_us == 20.0
    assert longer.runs == 2 * SAMPLES + WARM_UP_RUNS  # the first looks brought no sample


def test_waiting_ends_with_patience() -> None:
    assert is_quiet(_Watch(chain(repeat(2.0, 3), repeat(1.0))), time.perf_counter() + 60)
    assert not is_quiet(_Watch(repeat(2.0)), time.perf_counter() - 1)


def test_out_of_patience_samples_are_divided_by_the_slowdown() -> None:
    longer, shorter = _Timed(repeat(60.0)), _Timed(repeat(20.0))
    sample = difference(_pair(longer, shorter), 1, _Watch(repeat(2.0)), 0.0)
    assert (sample.p10_us, sample.median_us, sample.p90_us) == (20.0, 20.0, 20.0)
    assert sample.samples == 10  # steady rounds: more would say the same


def test_sampling_ends_where_the_slowdown_never_holds_still() -> None:
    """Then all rounds count, each corrected by what was seen around it."""
    watch = _Watch(cycle([1.5, 3.0]))
    longer = _Timed(repeat(90.0))
    sample = difference(_pair(longer, _Timed(repeat(45.0))), 1, watch, 0.0)
    assert sample.samples == SAMPLES
    assert longer.runs == 2 * sample.samples + WARM_UP_RUNS
    assert sample.p10_us == sample.median_us == pytest.approx(45.0 / 2.25)


def test_of_disturbed_rounds_the_steady_ones_count_if_they_are_many() -> None:
    steady = (Taken(40.0, 2.0, 2.0), Taken(20.0, 2.0, 2.0))
    changed = (Taken(80.0, 1.0, 2.0), Taken(20.0, 2.0, 2.0))
    differences, count = differences_us([steady] * 10 + [changed] * 11)
    assert (differences.tolist(), count) == ([10.0, 10.0, 10.0], 10)
    differences, count = differences_us([steady] * 9 + [changed] * 11)
    assert differences.tolist() == pytest.approx([80 / 1.5 - 10.0] * 3)
    assert count == 20


def test_rounds_cancel_what_both_functions_suffer() -> None:
    """The processor gets slower, less so for memory: what is subtracted was slowed down alike."""
    rounds = [
        (Taken(300.0 * slow**0.5, slow, slow), Taken(200.0 * slow**0.5, slow, slow))
        for slow in np.linspace(1.5, 2.5, 30).tolist()
    ]
    differences, _ = differences_us(rounds)
    assert differences[0] == pytest.approx(100.0 / 2.0**0.5, rel=0.02)


def test_a_time_is_never_negative_and_percentiles_are_in_order() -> None:
    longer, shorter = _Timed(cycle([10.0, 12.0])), _Timed(cycle([11.0, 11.5]))
    sample = difference(_pair(longer, shorter), 1, _Watch(repeat(1.0)), 0.0)
    assert 0.0 <= sample.p10_us <= sample.median_us <= sample.p90_us


class _Memory:
    """What other processes have seen."""

    def __init__(self, best_us: float = math.inf) -> None:
        self.known_us = best_us

    def best_us(self) -> float:
        return self.known_us

    def keep(self, best_us: float) -> None:
        self.known_us = min(self.known_us, best_us)


@pytest.mark.parametrize(
    ("known_us", "slowdown"),
    [
        (math.inf, 1.5),  # 15 µs of 10
        (12.0, 1.5),  # what it has seen itself is better
        (5.0, 3.0),  # it has never seen the processor undisturbed, others have
    ],
)
def test_the_slowdown_is_held_against_the_reference_at_its_best(
    monkeypatch: pytest.MonkeyPatch, known_us: float, slowdown: float
) -> None:
    seconds = iter([0.0, *(0.001 * number for number in range(10_000))])
    monkeypatch.setattr("time.perf_counter", lambda: next(seconds))
    reference = _Timed(chain([10.0] * 50 + [20.0] * 450, repeat(15.0)))
    memory = _Memory(known_us)
    watched = Quiet(reference, memory)
    assert watched.slowdown() == pytest.approx(slowdown)
    assert memory.known_us == min(known_us, 10.0)


def test_the_evictor_touches_twice_the_cache() -> None:
    evictor = Evictor(1 << 12)
    evictor()
    assert evictor._buffer.nbytes == 2 << 12
    assert (evictor._buffer == 1.0).all()
