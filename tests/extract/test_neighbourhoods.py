"""Parts of an e-graph hold choices of the whole, and what an e-graph stands for can be lifted."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from relational_tensat.extract import UNUSED, dag_cost_us
from relational_tensat.extract.exact.neighbourhoods import chosen_by, early
from relational_tensat.extract.exact.reduce.reduced import unreduced
from relational_tensat.extract.exact.reduce.reductions import REDUCTIONS, reduce
from relational_tensat.extract.greedy.bottom_up import DagDeriver
from tests.extract.instances import build, random_problem

SEEDS = st.integers(0, 10**9)


@settings(max_examples=100, deadline=None)
@given(seed=SEEDS)
def test_what_a_choice_does_not_need_is_not_lifted(seed: int) -> None:
    after = reduce(unreduced(random_problem(seed)))
    problem = after.problem
    choice = DagDeriver(problem).derive(problem.cost_us)
    cost = dag_cost_us(problem, choice)
    for node in np.flatnonzero(choice[problem.node_class] == UNUSED).tolist():
        choice[problem.node_class[node]] = node
    assert dag_cost_us(after.source, after.lift(choice)) <= cost + 1e-9


def test_detours_over_what_comes_later_are_left_out() -> None:
    # The root requires classes 1 and 2; class 2 rests on class 1, and class 3, which class 1 may
    # come from, on class 2.
    nodes = [
        (0, 0.0, [1, 2]),
        (1, 1.0, []),
        (1, 0.0, [3]),
        (2, 1.0, [1]),
        (3, 1.0, [2]),
        (3, 9.0, []),
    ]
    problem = build(nodes, 4)
    mask = early(problem)  # class 3 can be had without class 2
    assert mask is not None
    assert mask.tolist() == [True, True, True, True, False, True]
    mask = early(build(nodes[:-1], 4))
    assert mask is not None
    assert mask.tolist() == [True, True, False, True, True]


def test_a_part_holds_the_best_choice_and_is_no_more_than_half() -> None:
    problem = random_problem(3)
    best = DagDeriver(problem).derive(problem.cost_us)
    part = chosen_by(problem, np.zeros(problem.n_nodes, dtype=np.bool_), best)
    assert part is not None
    assert part[best[best != UNUSED]].all()
    assert chosen_by(problem, np.ones(problem.n_nodes, dtype=np.bool_), best) is None


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_nothing_early_is_taken_from_a_root_of_several_e_nodes(seed: int) -> None:
    problem = REDUCTIONS["underivable"](unreduced(random_problem(seed))).problem
    if np.count_nonzero(problem.node_class == problem.root) > 1:
        assert early(problem) is None
