"""Improving choices in place, and greedy extraction where the sets of classes are too large."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from relational_tensat.base.errors import NoSolutionError
from relational_tensat.extract import (
    ExtractionOptions,
    ExtractionProblem,
    dag_cost_us,
    extract,
    is_acyclic,
)
from relational_tensat.extract.greedy import dag as greedy_dag_module
from relational_tensat.extract.greedy import improve as greedy_improve
from relational_tensat.extract.greedy.bottom_up import DagDeriver, settle_by_tree_cost, tree_greedy
from relational_tensat.extract.greedy.dag import OUTGROWN, cheapest_greedy, named_choices
from relational_tensat.extract.greedy.improve import Improver
from tests.extract.instances import brute_force_us, build, layered_problem, random_problem


def improver(problem: ExtractionProblem) -> Improver:
    return Improver(problem, *settle_by_tree_cost(problem, None))


def instances() -> Iterator[ExtractionProblem]:
    for seed in range(300):
        yield random_problem(seed)
    for seed in range(60):
        yield random_problem(seed, max_classes=40)
    yield layered_problem(layers=3, width=4, seed=2)


def test_improved_choices_are_acyclic_and_never_worse() -> None:
    better = 0
    for problem in instances():
        improving = improver(problem)
        for choice in (tree_greedy(problem), improving.spread(tree_greedy(problem))):
            improved = improving.improve(choice)
            assert is_acyclic(problem, improved)
            before, after = dag_cost_us(problem, choice), dag_cost_us(problem, improved)
            assert after <= before + 1e-9
            better += after < before
    assert better > 5


def test_no_improved_choice_is_below_the_optimum() -> None:
    for seed in range(150):
        problem = random_problem(seed)
        improved = improver(problem).improve(tree_greedy(problem))
        assert dag_cost_us(problem, improved) >= brute_force_us(problem) - 1e-9


def test_what_is_there_anyway_costs_nothing_more() -> None:
    # Tree-greedy takes the leaf of cost 4 for class 1, though class 2 (cost 5) is needed beside it.
    problem = build([(0, 0.0, [1, 2]), (1, 4.0, []), (1, 1.0, [2]), (2, 5.0, [])], 3)
    tree = tree_greedy(problem)
    assert dag_cost_us(problem, tree) == 9.0
    assert dag_cost_us(problem, improver(problem).improve(tree)) == 6.0


def test_what_nothing_needs_any_more_is_saved() -> None:
    # Classes 3 and 4 serve class 1 alone: its other e-node costs more than the one that needs
    # them, and less than all of them.
    problem = build(
        [(0, 0.0, [1, 2]), (1, 1.0, [3]), (1, 6.0, [2]), (2, 2.0, []), (3, 3.0, [4]), (4, 3.0, [])],
        5,
    )
    tree = tree_greedy(problem)
    assert dag_cost_us(problem, tree) == 9.0
    assert dag_cost_us(problem, improver(problem).improve(tree)) == 8.0


def test_flow_shares_what_has_many_users() -> None:
    # Class 3 costs 5 and serves both halves: each half alone is cheaper without it.
    nodes = [
        (0, 0.0, [1, 2]), (1, 4.0, []), (1, 1.0, [3]), (2, 4.0, []), (2, 1.0, [3]), (3, 5.0, []),
    ]  # fmt: skip
    problem = build(nodes, 4)
    improving = improver(problem)
    assert dag_cost_us(problem, improving.improve(tree_greedy(problem))) == 8.0
    shared = np.array([0, 2, 4, 5], dtype=np.int32)
    assert dag_cost_us(problem, improving.spread(shared)) == 7.0


def test_improving_ends_with_the_time() -> None:
    problem = layered_problem(layers=4, width=4, seed=3)
    choice = tree_greedy(problem)
    stopped = Improver(problem, *settle_by_tree_cost(problem, None), lambda: True)
    assert stopped.improve(choice).tolist() == choice.tolist()


def test_passes_end_when_they_reach_too_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(greedy_improve, "_STEPS_PER_ENODE", 0)
    for seed in range(50):
        problem = random_problem(seed)
        choice = tree_greedy(problem)
        improved = improver(problem).improve(choice)
        assert is_acyclic(problem, improved)
        assert dag_cost_us(problem, improved) <= dag_cost_us(problem, choice) + 1e-9


@pytest.mark.parametrize("most_members", [0, 1, 5, 20])
def test_derivations_without_sets_are_acyclic_and_their_costs_are_bounds(most_members: int) -> None:
    outgrown = 0
    for seed in range(150):
        problem = random_problem(seed, max_classes=12)
        deriver = DagDeriver(problem, most_members)
        choice = deriver.derive(problem.cost_us)
        assert is_acyclic(problem, choice)
        costs = deriver.derivation_costs(problem.cost_us)
        outgrown += not deriver.exact
        exact = DagDeriver(problem).derivation_costs(problem.cost_us)
        # What is settled before the sets are given up is as it was; the rest is not checked.
        assert np.all((costs == exact) | np.isinf(costs))
    assert outgrown > 5


def test_all_sets_that_fit_are_made() -> None:
    chain = build([(0, 1.0, []), *((k, 1.0, [k - 1]) for k in range(1, 10))], 10, root=9)
    for most_members, fits in ((54, True), (53, False)):  # 2 + 3 + … + 10; a leaf's is its own
        deriver = DagDeriver(chain, most_members)
        deriver.derive(chain.cost_us)
        assert deriver.exact == fits


def test_where_the_sets_are_too_large_the_report_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = layered_problem(layers=4, width=3, seed=1)
    bare = build(
        [
            (int(problem.node_class[n]), float(problem.cost_us[n]), problem.children(n).tolist())
            for n in range(problem.n_nodes)
        ],
        problem.n_classes,
        problem.root,
    )
    monkeypatch.setattr(greedy_dag_module, "LARGEST_REDUCED", 0)
    monkeypatch.setattr("relational_tensat.extract.greedy.bottom_up.MOST_MEMBERS", 10)
    names = [name for name, _ in named_choices(bare)]
    assert names[:2] == ["tree-greedy", OUTGROWN]
    assert len(names) == 4
    assert names[2].endswith(", improved in place")
    assert names[3].endswith(", spread by flow and improved again")
    extraction = extract(bare, ExtractionOptions("greedy-dag"))
    assert extraction.note in names
    assert extraction.cost_us <= dag_cost_us(bare, tree_greedy(bare))
    monkeypatch.setattr(greedy_dag_module, "LARGEST_UNLIMITED", 0)
    assert cheapest_greedy(bare, lambda: True)[1] == "tree-greedy"  # no time for more


def test_the_named_choice_is_the_cheapest() -> None:
    for seed in range(60):
        problem = random_problem(seed)
        choice, name = cheapest_greedy(problem)
        choices = list(named_choices(problem))
        costs = [dag_cost_us(problem, choice) for _, choice in choices]
        assert dag_cost_us(problem, choice) == min(costs)
        assert name == choices[costs.index(min(costs))][0]
        assert problem.has_original == (choices[0][0] == "the original graph")


def test_no_derivation_at_all() -> None:
    problem = build([(0, 1.0, [1]), (1, 1.0, [0])], 2)
    with pytest.raises(NoSolutionError):
        cheapest_greedy(problem)
    with pytest.raises(NoSolutionError):
        DagDeriver(problem, 0).derive(problem.cost_us)
