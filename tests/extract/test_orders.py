"""Numbers within components keep out every cycle in them, and no acyclic choice."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relational_tensat.extract import UNUSED, ExtractionOptions, ExtractionProblem, extract
from relational_tensat.extract.exact.reduce.declaration import REDUCTIONS
from relational_tensat.extract.exact.reduce.smaller_problem import unreduced
from relational_tensat.extract.exact.solve.constraints import Columns
from relational_tensat.extract.exact.solve.formulation import (
    LARGEST_ORDERED,
    WITHIN,
    Formulation,
    components_to_order,
    formulate,
    with_order,
)
from relational_tensat.extract.exact.solve.solver import LinearProgram
from relational_tensat.extract.index import cyclic_sets
from tests.extract.instances import brute_force_us, build, random_problem
from tests.extract.test_relaxation import acyclic_points, assert_satisfied, options

SEEDS = st.integers(0, 10**9)


def prepared(seed: int) -> ExtractionProblem:
    reduced = REDUCTIONS["underivable"].run(unreduced(random_problem(seed, max_classes=5)))
    return REDUCTIONS["self-loops"].run(reduced).problem


def ordered(problem: ExtractionProblem) -> Formulation:
    return with_order(
        formulate(problem, "auto", 1.0), components_to_order(problem, WITHIN["order"])
    )


@settings(max_examples=80, deadline=None)
@given(seed=SEEDS)
def test_every_acyclic_choice_has_numbers(seed: int) -> None:
    problem = prepared(seed)
    model = ordered(problem)
    points = [
        model.point(model.chosen(point))
        for point in acyclic_points(problem)
        if point[problem.n_nodes + problem.root]
    ]
    assert_satisfied(model.rows, points)
    for point in points:
        assert np.all((model.columns.lower <= point) & (point <= model.columns.upper))


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_no_circular_choice_has_numbers(seed: int) -> None:
    problem = prepared(seed)
    model = ordered(problem)
    members = [
        np.flatnonzero(problem.node_class == klass).tolist() for klass in range(problem.n_classes)
    ]
    for taken in itertools.islice(itertools.product(*members), 40):
        choice = np.array(taken, dtype=np.int32)
        if cyclic_sets(problem, choice):
            assert not _has_numbers(model, choice)


def _has_numbers(model: Formulation, choice: np.ndarray) -> bool:
    """Fix what is chosen below the root, and ask whether the rest can be filled in."""
    problem, columns = model.problem, model.columns
    used = {problem.root}
    order = [problem.root]
    for klass in order:
        for child in problem.children(int(choice[klass])).tolist():
            if child not in used:
                used.add(child)
                order.append(child)
    lower, upper = columns.lower.copy(), columns.upper.copy()
    for klass in range(problem.n_classes):
        upper[np.flatnonzero(problem.node_class == klass)] = 0.0
        lower[problem.n_nodes + klass] = upper[problem.n_nodes + klass] = float(klass in used)
        if klass in used:
            lower[choice[klass]] = upper[choice[klass]] = 1.0
    fixed = Columns(columns.cost, lower, upper, columns.integer)
    return LinearProgram(fixed, model.rows, options()).solve() is not None


def ring(size: int) -> ExtractionProblem:
    """Return classes that each need the next for nothing, or stand for themselves, dearly."""
    nodes = [(0, 0.0, list(range(1, size + 1)))]
    nodes += [(1 + at, 0.0, [1 + (at + 1) % size]) for at in range(size)]
    nodes += [(1 + at, 10.0 + at, []) for at in range(size)]
    return build(nodes, size + 1)


def test_components_are_chosen_by_size() -> None:
    small, large = ring(LARGEST_ORDERED), ring(LARGEST_ORDERED + 1)
    assert [len(part) for part in components_to_order(small, WITHIN["auto"])] == [LARGEST_ORDERED]
    assert components_to_order(large, WITHIN["auto"]) == []
    assert len(components_to_order(large, WITHIN["order"])) == 1
    assert components_to_order(small, WITHIN["cuts"]) == []


@pytest.mark.parametrize("cycles", sorted(WITHIN))
def test_each_way_finds_the_optimum(cycles: str) -> None:
    assert extract(ring(12), ExtractionOptions(ilp_cycles=cycles)).cost_us == 10.0
    reductions = [name for name in REDUCTIONS if name not in ("underivable", "self-loops")]
    without = [*reductions, "pinning", "ascent", "landmarks", "two-cycles"]
    for seed in range(60):
        problem = random_problem(seed)
        extraction = extract(problem, ExtractionOptions(ilp_cycles=cycles), disable=without)
        assert extraction.cost_us == pytest.approx(brute_force_us(problem)), seed
        assert extraction.optimal, seed
        assert extraction.choice[problem.root] != UNUSED
