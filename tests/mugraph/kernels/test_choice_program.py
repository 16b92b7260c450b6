"""Tables solved by the integer program cost what the cheapest of all choices costs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from relational_tensat.base.errors import NoSolutionError
from relational_tensat.mugraph.kernels.choice_program import CostedChoices, CostTable, Limit, solve


def drawn(seed: int) -> CostedChoices:
    """Return a few variables with tables of one, two and three of them, and a limit."""
    random = np.random.default_rng(seed)
    sizes = tuple(int(size) for size in random.integers(1, 5, 5))
    tables = []
    for count in (1, 1, 2, 2, 2, 3):
        picked = tuple(int(v) for v in random.choice(5, count, replace=False))
        costs = random.integers(0, 1000, [sizes[v] for v in picked])
        tables.append(CostTable(picked, costs))
    terms = {v: random.integers(0, 10, size).tolist() for v, size in enumerate(sizes)}
    return CostedChoices(sizes, tuple(tables), (Limit(terms, int(random.integers(12, 30))),))


def allows(choices: CostedChoices, values: Sequence[int]) -> bool:
    return all(
        sum(terms[values[v]] for v, terms in limit.terms.items()) <= limit.most
        for limit in choices.limits
    )


def test_the_cheapest_choice_is_found_and_proven() -> None:
    solved = 0
    for seed in range(40):
        choices = drawn(seed)
        allowed = [v for v in itertools.product(*map(range, choices.sizes)) if allows(choices, v)]
        if not allowed:
            with pytest.raises(NoSolutionError):
                solve(choices)
            continue
        solution = solve(choices)
        assert allows(choices, solution.values)
        assert solution.cost == choices.cost(solution.values) == min(map(choices.cost, allowed))
        assert solution.bound >= solution.cost
        solved += 1
    assert 20 < solved < 40
