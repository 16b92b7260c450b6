"""A sweep of tree search's budgets."""

from __future__ import annotations

from bench.mcts.budgets import BUDGETS, SWEPT, searched
from bench.models import MODELS


def test_a_budget_bounds_the_rollouts_of_a_decision() -> None:
    assert set(SWEPT) <= set(MODELS) and BUDGETS[0] == 1
    for budget in (1, 4):
        row = searched("vgg19", budget, 0)
        assert (row.model, row.budget, row.seed) == ("vgg19", budget, 0)
        assert row.decisions <= row.rollouts <= budget * row.decisions
        assert row.all_us <= row.real_us * (1 + 1e-9)
