"""Races of graphs whose speeds are known, with noise that is made up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from relational_tensat.cost.cache import CostCache
from relational_tensat.cost.measured_source import MeasuredSource
from relational_tensat.cost.race import (
    LEAST_HEATS,
    MOST,
    MOST_HEATS,
    RaceOutcome,
    Standing,
    TimingRound,
    corrections_of,
    race,
)
from relational_tensat.cost.source import Race
from tests.cost.fakes import CPU, FakeDevice, flat_us, products

BEFORE = {"matmul": 100.0, "add": 50.0}


def outcome(
    after_us: dict[str, float], speedup: float, error: float = 0.01, model: str = "m"
) -> RaceOutcome:
    return RaceOutcome(model, BEFORE, after_us, speedup, error)


def test_without_races_nothing_is_corrected() -> None:
    assert corrections_of([]).factors == {}
    assert corrections_of([RaceOutcome("m", {}, {}, 1.0, 0.01)]).factors == {}
    as_predicted = [outcome({"matmul": 100.0}, 1.5), outcome({"matmul": 50.0, "add": 50.0}, 1.5)]
    assert corrections_of(as_predicted).factors == {}


def test_factors_are_what_whole_graphs_say() -> None:
    """Additions truly cost 0.8 of what was measured: a graph without them gains less."""
    truth = corrections_of([outcome({"matmul": 100.0}, (100 + 0.8 * 50) / 100)] * 50)
    assert truth.races == 50
    assert truth.of("add") / truth.of("matmul") == pytest.approx(0.8, abs=0.01)
    assert truth.of("relu") == 1.0
    assert truth.describe(["add", "relu"]) == f"add {truth.of('add'):.2f}"


def test_a_race_of_much_noise_says_little() -> None:
    after, speedup = {"matmul": 100.0}, 1.2
    sure, unsure = (corrections_of([outcome(after, speedup, e)]).of("add") for e in (0.01, 0.3))
    assert sure < unsure < 1.0
    assert corrections_of([outcome(after, speedup, float("inf"))]).factors == {}


def test_no_kind_is_corrected_by_more_than_so_much() -> None:
    wild = corrections_of([outcome({"matmul": 1.0}, 0.1)] * 100)
    assert set(wild.factors.values()) <= {MOST, 1 / MOST}


def test_the_cache_keeps_what_was_said_for_a_device(tmp_path: Path) -> None:
    cache = CostCache(tmp_path / "costs.duckdb")
    assert cache.races(CPU) == []
    first, second = outcome({"matmul": 100.0}, 1.2), outcome({"add": 50.0}, 2.9, model="n")
    cache.keep_races(CPU, [first, second])
    other = replace(CPU, name="another")
    cache.keep_races(other, [first])
    again = replace(first, before_us={"matmul": 99.0}, speedup=1.3)  # the same graphs
    cache.keep_races(CPU, [again])
    assert cache.races(CPU) == [again, second]
    assert cache.races(other) == [first]
    cache.forget(CPU)
    assert cache.races(CPU) == []
    assert cache.races(other) == [first]


def test_what_races_of_another_kind_said_does_not_count(tmp_path: Path) -> None:
    cache = CostCache(tmp_path / "costs.duckdb")
    said = outcome({"matmul": 100.0}, 1.2)
    cache.keep_races(CPU, [said])
    with cache.opened() as connection:  # as caches were before races had versions
        connection.execute("ALTER TABLE race_outcome DROP COLUMN race_version")
    assert cache.races(CPU) == []
    cache.keep_races(CPU, [said])
    assert cache.races(CPU) == [said]
    with cache.opened() as connection:
        connection.execute("UPDATE race_outcome SET race_version = race_version + 1")
    assert cache.races(CPU) == []


def test_a_cache_of_before_has_no_races(tmp_path: Path) -> None:
    cache = CostCache(tmp_path / "costs.duckdb")
    MeasuredSource("cpu", FakeDevice(), cache).ask(products(1))
    assert cache.races(CPU) == []
    assert cache.forget(CPU) == 1


def test_the_next_run_is_corrected_and_says_so(tmp_path: Path) -> None:
    cache = CostCache(tmp_path / "costs.duckdb")
    one, other = products(2)
    source = MeasuredSource("cpu", FakeDevice(), cache, learns=True)
    before_us = source.ask([one, other])[one].cost_us
    source.learn_races([Race("m", [one, other], [other], 1.2, 0.01)])
    assert source.ask([one])[one].cost_us == before_us  # until they are renewed
    (kept,) = cache.races(CPU)
    assert kept.before_us == {"matmul": round(flat_us(one) + flat_us(other), 3)}
    plain = MeasuredSource("cpu", FakeDevice(), cache)
    assert plain.ask([one])[one].cost_us == before_us
    assert plain.notes == ()
    learned = MeasuredSource("cpu", FakeDevice(), cache, learns=True)
    factor = corrections_of([kept]).of("matmul")
    assert factor != 1.0
    assert learned.ask([one])[one].cost_us == pytest.approx(before_us * factor)
    (note,) = learned.notes
    assert note.startswith("measured costs are corrected by what races say (1 in ")
    assert f"times matmul {factor:.2f}" in note


def test_costs_are_others_when_they_are_renewed(tmp_path: Path) -> None:
    cache = CostCache(tmp_path / "costs.duckdb")
    one, other = products(2)
    source = MeasuredSource("cpu", FakeDevice(), cache, learns=True)
    before_us = source.ask([one, other])[one].cost_us
    assert not source.renew()
    source.learn_races([Race("m", [one, other], [other], 1.2, 0.01)])
    assert source.renew()
    (kept,) = cache.races(CPU)
    factor = corrections_of([kept]).of("matmul")
    assert source.ask([one])[one].cost_us == pytest.approx(before_us * factor)
    assert not source.renew()


def test_of_kernels_that_are_not_measured_less_is_learnt(tmp_path: Path) -> None:
    cache = CostCache(tmp_path / "costs.duckdb")
    one, other, third = products(3)
    source = MeasuredSource("cpu", FakeDevice(), cache, learns=True)
    source.ask([one])
    source.learn_races([Race("estimated alike", [one, other], [one, other], 1.2, 0.01)])
    assert cache.races(CPU) == []  # alike by the sums
    source.learn_races(
        [
            Race("in both", [one, other], [other], 1.2, 0.01),
            Race("in one", [one, other, third], [one, third], 1.2, 0.01),
        ]
    )
    errors = {each.model: each.error for each in cache.races(CPU)}
    assert errors["in both"] == pytest.approx(0.01)
    assert errors["in one"] > 0.03


def heats(speeds: Sequence[float], noise: float, seed: int) -> tuple[TimingRound, list[list[int]]]:
    """Return heats of graphs that are so many times as fast as the original, and who was in each."""
    rng = np.random.default_rng(seed)
    run: list[list[int]] = []

    def heat(numbers: Sequence[int]) -> list[float]:
        run.append(list(numbers))
        times = [np.exp(rng.normal(0, noise)) / (1.0, *speeds)[number] for number in numbers]
        return [times[0] / time for time in times]

    return heat, run


def never(share: float) -> bool:
    return False


def at_once(share: float) -> bool:
    return True


def test_the_fastest_wins_and_what_is_slower_leaves() -> None:
    heat, run = heats([0.9, 1.10, 1.02, 1.0], 0.01, 0)
    result = race(heat, 4, never)
    assert (result.winner, result.final.is_as_fast, result.final.is_faster) == (2, True, True)
    assert result.final.low < 1.10 < result.final.high
    assert result.noise.low < 1.0 < result.noise.high
    assert result.standings[0].heats == LEAST_HEATS
    assert run[0] == [0, 1, 2, 3, 4, 0] and run[-1] == [0, 2, 0]


def test_without_noise_a_tie_is_known_at_once_and_taken() -> None:
    heat, run = heats([1.0], 0.0, 0)
    result = race(heat, 1, never)
    assert result.final.is_as_fast and not result.final.is_faster
    assert len(run) == LEAST_HEATS


def test_a_slower_graph_never_takes_the_originals_place_however_loud_it_is() -> None:
    won = 0
    for seed in range(200):
        noise = (0.002, 0.01, 0.03, 0.1)[seed % 4]
        result = race(heats([0.95, 0.96, 0.94], noise, seed)[0], 3, never)
        won += result.final.is_as_fast
    assert won <= 2  # of 200, each with a chance of half a percent at each look


def test_time_that_is_over_ends_it_after_the_fewest_heats() -> None:
    heat, run = heats([1.2, 1.3], 0.05, 1)
    race(heat, 2, at_once)
    assert len(run) == 2 * LEAST_HEATS
    heat, run = heats([1.2, 1.5], 0.01, 1)
    result = race(heat, 2, at_once, 2)
    assert len(run) == 2 + LEAST_HEATS and result.winner == 2 and result.final.is_faster


def test_what_is_never_clear_ends_too() -> None:
    heat, run = heats([1.0, 1.0], 0.2, 2)
    assert not race(heat, 2, never).final.is_as_fast
    assert len(run) <= 2 * MOST_HEATS


def test_an_interval_is_students() -> None:
    """Five values of mean 0 and standard deviation 1: t of four degrees of freedom is 4.604."""
    values = np.array([-1.0, -1.0, 0.0, 1.0, 1.0])
    standing = Standing.of((values / values.std(ddof=1)).tolist())
    assert np.log(standing.high) == pytest.approx(4.604 / 5**0.5)
    assert standing.speedup == pytest.approx(1.0)
