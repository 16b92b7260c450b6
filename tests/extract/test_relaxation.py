from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.base.watch import Watch
from relational_tensat.extract import UNUSED, ExtractionProblem, extract, topological_order
from relational_tensat.extract.exact.landmarks import LandmarkCuts
from relational_tensat.extract.exact.reduce.declaration import REDUCTIONS
from relational_tensat.extract.exact.reduce.smaller_problem import unreduced
from relational_tensat.extract.exact.relaxation import (
    LandmarkAscent,
    Relaxation,
    landmark_rows,
    relax,
)
from relational_tensat.extract.exact.solve.constraints import (
    Rows,
    cycle_cuts,
    stack_rows,
    two_cycle_rows,
)
from relational_tensat.extract.exact.solve.formulation import Formulation, formulate
from relational_tensat.extract.exact.solve.search import Search, SolverOptions
from relational_tensat.extract.exact.solve.solver import LinearProgram
from relational_tensat.extract.greedy.bottom_up import DagDeriver
from tests.extract.instances import brute_force_us, build, layered_problem, random_problem

SEEDS = st.integers(0, 10**9)


def options() -> SolverOptions:
    return SolverOptions(Watch(60.0))


def relaxed(problem: ExtractionProblem, model: Formulation, rows: Rows) -> Relaxation | None:
    """Relax with a greedy choice at hand, without landing on what closes the search early."""
    search = Search(problem, DagDeriver(problem).derive(problem.cost_us))
    search.cost_us = 1e9
    return relax(search, model, rows, options())


def prepared(seed: int) -> ExtractionProblem:
    reduced = REDUCTIONS["underivable"].run(unreduced(random_problem(seed, max_classes=5)))
    return REDUCTIONS["self-loops"].run(reduced).problem


def acyclic_points(problem: ExtractionProblem) -> list[np.ndarray]:
    """Return the 0/1 points of all acyclic choices of an e-graph."""
    members = [
        [*np.flatnonzero(problem.node_class == klass).tolist(), UNUSED]
        for klass in range(problem.n_classes)
    ]
    model = formulate(problem, "auto", 1.0)
    points = []
    for choice in itertools.product(*members):
        try:
            used = topological_order(problem, np.array(choice, dtype=np.int32))
        except RelationalTensatError:
            continue
        if all((node == UNUSED) == (klass not in used) for klass, node in enumerate(choice)):
            points.append(model.point(np.array(choice, dtype=np.int32)))
    return points


def assert_satisfied(rows: Rows, points: list[np.ndarray]) -> None:
    for number in range(rows.count):
        part = slice(rows.ptr[number], rows.ptr[number + 1])
        for point in points:
            value = rows.val[part] @ point[rows.idx[part]]
            assert rows.lower[number] - 1e-9 <= value <= rows.upper[number] + 1e-9


@settings(max_examples=80, deadline=None)
@given(seed=SEEDS, noise=SEEDS)
def test_every_row_and_cut_holds_for_every_acyclic_choice(seed: int, noise: int) -> None:
    problem = prepared(seed)
    points = acyclic_points(problem)
    if not points:
        return
    rng = np.random.default_rng(noise)
    x = rng.random(problem.n_nodes) * (rng.random(problem.n_nodes) < 0.7)
    y = rng.random(problem.n_classes)
    sets = [rng.choice(problem.n_classes, size=min(2, problem.n_classes), replace=False).tolist()]
    for rows in (
        formulate(problem, "auto", 1.0).rows,
        two_cycle_rows(problem),
        LandmarkCuts(problem).violated(x, y),
        cycle_cuts(problem, sets),
        landmark_rows(LandmarkAscent(problem).ascend(x)),
    ):
        assert_satisfied(rows, points)


@settings(max_examples=150, deadline=None)
@given(seed=SEEDS)
def test_the_bound_and_the_hopeless_are_honest(seed: int) -> None:
    problem = prepared(seed)
    best = brute_force_us(problem)
    if best in (0.0, np.inf):
        return
    model = formulate(problem, "auto", 1.0)
    relaxation = relaxed(problem, model, model.rows)
    assert relaxation is not None
    assert relaxation.bound_us <= best + 1e-6
    # With what is excluded below a cost just above the optimum left out, an optimum remains.
    excluded = relaxation.excluded(best + 1e-3)
    rest = build(
        [
            (
                int(problem.node_class[node]),
                float(problem.cost_us[node]),
                problem.children(node).tolist(),
            )
            for node in np.flatnonzero(~excluded).tolist()
        ],
        problem.n_classes,
        problem.root,
    )
    assert brute_force_us(rest) == pytest.approx(best)


@settings(max_examples=150, deadline=None)
@given(seed=SEEDS)
def test_an_ascent_is_a_bound_and_its_rest_comes_on_top(seed: int) -> None:
    problem = prepared(seed)
    best = brute_force_us(problem)
    if best == np.inf:
        return
    ascent = LandmarkAscent(problem).ascend(problem.cost_us)
    assert ascent.bound <= best + 1e-9
    assert (ascent.bound > 0) == (best > 0)
    for point in acyclic_points(problem):
        cost = problem.cost_us @ point[: problem.n_nodes]
        for node in np.flatnonzero(point[: problem.n_nodes]).tolist():
            assert ascent.bound + ascent.excess[node] <= cost + 1e-9


def test_the_ascent_on_merged_products_is_most_of_the_optimum() -> None:
    problem = layered_problem(layers=2, width=4, seed=3)
    best = extract(problem).cost_us
    assert 0.8 * best < LandmarkAscent(problem).ascend(problem.cost_us).bound <= best


def test_landmarks_see_that_thin_ways_come_together() -> None:
    # Four ways to the same costly class: the plain relaxation pays for a quarter of it.
    ways = 4
    nodes = [(0, 0.0, [way + 1]) for way in range(ways)]
    nodes += [(way + 1, 0.0, [ways + 1]) for way in range(ways)]
    nodes += [(way + 1, 0.1, [ways + 2]) for way in range(ways)]
    nodes += [(ways + 1, 10.0, []), (ways + 2, 10.0, [])]
    problem = build(nodes, ways + 3)
    model = formulate(problem, "auto", 1.0)
    plain = LinearProgram(model.columns, model.rows, options()).solve()
    tight = relaxed(problem, model, model.rows)
    assert plain is not None
    assert tight is not None
    assert plain.objective < 6
    assert tight.bound_us == pytest.approx(10.0)


def test_landmarks_lead_to_what_too_little_is_chosen_of() -> None:
    # Whatever the root takes, it needs the three costly classes 4, 5, 6: at once, or by way of 1, 2, 3.
    problem = build(
        [
            (0, 1.0, [4, 1]), (0, 1.0, [5, 2]), (0, 1.0, [6, 3]),
            (1, 1.0, [5, 6]), (2, 1.0, [4, 6]), (3, 1.0, [4, 5]),
            *((klass, 10.0, []) for klass in (4, 5, 6)),
            *((klass, 25.0, []) for klass in (1, 2, 3)),
        ],
        7,
    )  # fmt: skip
    assert brute_force_us(problem) == 32.0
    x = np.zeros(problem.n_nodes)
    x[:9] = 1 / 3
    y = np.array([1.0, *[1 / 3] * 6])
    plain = LandmarkCuts(problem, follows_scarcity=False).violated(x, y)
    followed = LandmarkCuts(problem).violated(x, y)
    assert_satisfied(followed, acyclic_points(problem))
    assert followed.count > plain.count


def test_the_relaxation_of_merged_products_is_nearly_tight() -> None:
    problem = layered_problem(layers=1, width=6, seed=3)
    model = formulate(problem, "auto", 1.0)
    plain = LinearProgram(model.columns, model.rows, options()).solve()
    tight = relaxed(problem, model, stack_rows([model.rows, two_cycle_rows(problem)]))
    assert plain is not None
    assert tight is not None
    assert tight.bound_us > 1.5 * plain.objective


def test_rows_can_be_selected() -> None:
    rows = Rows(
        ptr=np.array([0, 2, 2, 3], dtype=np.int32),
        idx=np.array([4, 5, 6], dtype=np.int32),
        val=np.array([1.0, 2.0, 3.0]),
        lower=np.array([0.0, 1.0, 2.0]),
        upper=np.array([3.0, 4.0, 5.0]),
    )
    some = rows.select(np.array([0, 2]))
    assert some.ptr.tolist() == [0, 2, 3]
    assert some.idx.tolist() == [4, 5, 6]
    assert some.lower.tolist() == [0.0, 2.0]
