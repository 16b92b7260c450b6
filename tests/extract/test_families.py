"""The cheapest graphs that differ in families of rules, against all sets of families tried one by one."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations

import numpy as np
import pytest

from relational_tensat.extract import UNUSED, ExtractionProblem, extract
from relational_tensat.extract.families import cheapest_by_family
from relational_tensat.extract.tables import ORIGINAL
from tests.extract.instances import brute_force_us
from tests.extract.small_egraphs import small_problem
from tests.tiers import seeds

_FAMILIES = 4
_NEVER = 1e6


def with_families(seed: int) -> tuple[ExtractionProblem, np.ndarray]:
    """Return a problem and a random family per e-node; some graph has only e-nodes of none."""
    problem = small_problem(5 + 7 * seed)  # suppliers: decisions that are made together
    rng = np.random.default_rng(seed)
    family = rng.integers(0, _FAMILIES, problem.n_nodes).astype(np.int32)
    costliest = extract(replace(problem, cost_us=10.0 - problem.cost_us)).choice
    family[costliest[costliest != UNUSED]] = ORIGINAL
    return problem, family


def without(problem: ExtractionProblem, family: np.ndarray, forbidden: tuple[int, ...]) -> float:
    """Return what the cheapest graph costs that does without some families."""
    is_forbidden = np.isin(family, forbidden)
    return brute_force_us(replace(problem, cost_us=np.where(is_forbidden, _NEVER, problem.cost_us)))


@pytest.mark.parametrize("seeds", seeds(60))
def test_every_set_of_families_has_its_cheapest_graph_in_order_of_cost(seeds: range) -> None:
    several = 0
    for seed in seeds:
        problem, family = with_families(seed)
        found = list(cheapest_by_family(problem, family, extract(problem).choice, extract))
        costs = [one.cost_us for one in found]
        assert costs == sorted(costs) and len({round(cost, 6) for cost in costs}) == len(costs)
        for one in found:
            assert not one.families & one.without
            forbidden = tuple(one.without)
            assert one.cost_us == pytest.approx(without(problem, family, forbidden)), seed
        subsets = chain.from_iterable(
            combinations(range(_FAMILIES), size) for size in range(_FAMILIES + 1)
        )
        expected = {without(problem, family, subset) for subset in subsets}
        expected = {cost for cost in expected if cost < _NEVER}
        assert {round(cost, 6) for cost in costs} == {round(cost, 6) for cost in expected}, seed
        several += len(costs) > 2
    assert several > len(seeds) // 6
