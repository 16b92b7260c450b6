from __future__ import annotations

from bench.common.reference import join_ms


def test_the_reference_takes_some_time() -> None:
    assert 0.01 < join_ms() < 10_000
