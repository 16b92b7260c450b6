"""Races of graphs whose speeds are known, with noise that is made up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from relational_tensat.cost.race import LEAST_HEATS, MOST_HEATS, Heat, Standing, race


def heats(speeds: Sequence[float], noise: float, seed: int) -> tuple[Heat, list[list[int]]]:
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
    assert (result.winner, result.is_won, result.final.is_faster) == (2, True, True)
    assert result.final.low < 1.10 < result.final.high
    assert result.noise.low < 1.0 < result.noise.high
    assert result.standings[0].heats == LEAST_HEATS
    assert run[0] == [0, 1, 2, 3, 4, 0] and run[-1] == [0, 2, 0]


def test_without_noise_a_tie_is_known_at_once_and_taken() -> None:
    heat, run = heats([1.0], 0.0, 0)
    result = race(heat, 1, never)
    assert result.is_won and not result.final.is_faster
    assert len(run) == LEAST_HEATS


def test_a_slower_graph_never_takes_the_originals_place_however_loud_it_is() -> None:
    won = 0
    for seed in range(200):
        noise = (0.002, 0.01, 0.03, 0.1)[seed % 4]
        result = race(heats([0.95, 0.96, 0.94], noise, seed)[0], 3, never)
        won += result.is_won
    assert won <= 2  # of 200, each with a chance of half a percent at each look


def test_time_that_is_over_ends_it_after_the_fewest_heats() -> None:
    heat, run = heats([1.2, 1.3], 0.05, 1)
    race(heat, 2, at_once)
    assert len(run) == 2 * LEAST_HEATS


def test_what_is_never_clear_ends_too() -> None:
    heat, run = heats([1.0, 1.0], 0.2, 2)
    assert not race(heat, 2, never).is_won
    assert len(run) <= 2 * MOST_HEATS


def test_an_interval_is_students() -> None:
    """Five values of mean 0 and standard deviation 1: t of four degrees of freedom is 4.604."""
    values = np.array([-1.0, -1.0, 0.0, 1.0, 1.0])
    standing = Standing.of((values / values.std(ddof=1)).tolist())
    assert np.log(standing.high) == pytest.approx(4.604 / 5**0.5)
    assert standing.speedup == pytest.approx(1.0)
