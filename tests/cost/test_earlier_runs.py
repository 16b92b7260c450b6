"""Races of runs before: what a busy machine could not tell is timed again."""

from __future__ import annotations

import pytest

from relational_tensat.cost.earlier_runs import Raced
from relational_tensat.cost.race import Standing


@pytest.mark.parametrize(
    ("low", "high", "tells"),
    [
        (1.05, 1.9, True),  # faster, however unclear by how much
        (0.3, 0.95, True),
        (0.985, 1.018, True),
        (0.93, 1.08, True),
        (0.880, 1.916, False),
        (0.45, 1.05, False),
    ],
)
def test_a_wide_interval_around_one_tells_nothing(low: float, high: float, tells: bool) -> None:
    standing = Standing((low * high) ** 0.5, low, high, 7)
    assert Raced(standing, True, standing, "2026-11-29").tells_something == tells
