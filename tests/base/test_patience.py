"""A search ends when what is left is not worth the wait."""

from __future__ import annotations

import math

import pytest

from relational_tensat.base import deadline
from relational_tensat.base.deadline import WORTH_A_SECOND, GainPatience, GapPatience


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(deadline, "now_s", lambda: now[0])
    return now


def test_a_search_ends_once_its_second_half_gained_too_little(clock: list[float]) -> None:
    search = GainPatience(1000.0, least_s=1.0)

    def ends_after(seconds: float, cost_us: float) -> float:
        clock[0] = 100 + seconds
        return search.note(cost_us) - 100

    assert ends_after(0.2, 1000.0) == pytest.approx(1.2)  # a second in any case
    assert ends_after(1.0, 900.0) == pytest.approx(2.0)  # nothing for as long as it had taken
    assert ends_after(1.5, 950.0) == pytest.approx(2.0)  # no gain
    assert ends_after(1.9, 895.0) == pytest.approx(3.8)
    assert ends_after(3.0, 894.9) == pytest.approx(3.8)  # too little beside 895
    assert ends_after(3.5, 890.0) == pytest.approx(7.0)
    assert ends_after(6.0, 889.0) == pytest.approx(7.0)  # 0.1 % in 3.5 s


def test_where_nothing_costs_anything_it_ends(clock: list[float]) -> None:
    search = GainPatience(0.0, least_s=1.0)
    clock[0] = 100.5
    assert search.note(0.0) == pytest.approx(101.5)


def test_it_ends_at_the_first_moment_at_which_that_is_so(clock: list[float]) -> None:
    """The rule as it is said, asked at each of many moments."""
    found = [(0.0, 1000.0), (0.5, 700.0), (0.7, 699.0), (2.0, 690.0), (2.5, 689.5), (6.0, 688.5)]
    search = GainPatience(1000.0, least_s=0.0)
    for seconds, cost_us in found[1:]:
        clock[0] = 100 + seconds
        ends_s = search.note(cost_us) - 100

    def known_us(seconds: float) -> float:
        return [cost_us for found_s, cost_us in found if found_s <= seconds][-1]

    def goes_on(seconds: float) -> bool:
        gain = 1 - found[-1][1] / known_us(seconds / 2)
        return gain >= max(WORTH_A_SECOND, WORTH_A_SECOND * seconds / 2)

    moments_s = [step / 1000 for step in range(1, 40_000)]
    first_s = next(moment_s for moment_s in moments_s if not goes_on(moment_s))
    assert ends_s == pytest.approx(first_s, abs=0.002)


def test_a_proof_ends_once_the_gap_is_not_worth_the_time(clock: list[float]) -> None:
    proof = GapPatience(least_s=3.0)
    clock[0] = 1000.0
    assert not proof.is_over()  # nothing is known yet
    proof.note(math.inf, 10.0)
    assert not proof.is_over()
    for gap, passed_s, is_over in (
        (0.0005, 2.9, False),
        (0.0005, 3.1, True),
        (0.01, 9.9, False),
        (0.01, 10.1, True),
        (0.5, 60.0, False),
    ):
        clock[0] = 100 + passed_s
        proof.note(1000.0, 1000.0 * (1 - gap))
        assert proof.is_over() == is_over
