"""``python -m bench mcts`` on a small model."""

from __future__ import annotations

import pytest

from bench.__main__ import main
from bench.mcts.published import SECONDS
from relational_tensat.models import MODELS


def test_it_costs_no_more_than_before(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcts", "vgg19", "--node-limit", "200"]) == 0
    _, row = (line.split() for line in capsys.readouterr().out.splitlines())
    before, saturation, world, rollout, universe = map(float, row[6:11])
    assert universe <= min(world, rollout) <= max(world, rollout, saturation) <= before
    assert int(row[3]) > 0


def test_rollouts_are_counted_in_an_empty_and_in_a_full_universe(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["mcts", "vgg19", "--worlds", "1,4"]) == 0
    _, *rows = (line.split() for line in capsys.readouterr().out.splitlines())
    assert [(row[1], row[2]) for row in rows] == [
        ("1", "cold"), ("1", "warm"), ("4", "cold"), ("4", "warm"),
    ]  # fmt: skip


def test_the_paper_has_all_models() -> None:
    assert set(SECONDS) == set(MODELS)
