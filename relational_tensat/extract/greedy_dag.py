"""Sharing-aware greedy extraction: bottom-up and top-down, and never worse than the original."""

from __future__ import annotations

from relational_tensat.extract.bottom_up import DagDeriver
from relational_tensat.extract.covering import CoverGreedy
from relational_tensat.extract.dropping import drop_self_loops, drop_underivable
from relational_tensat.extract.greedy import tree_greedy
from relational_tensat.extract.inlining import inline_free_classes, inline_single_free
from relational_tensat.extract.problem import ExtractionProblem, Ints, dag_cost_us, reachable
from relational_tensat.extract.reduced import unreduced


def greedy_dag(problem: ExtractionProblem) -> Ints:
    """Return the cheapest of the greedy choices and the original graph, pruned.

    Raises:
        NoSolutionError: the root has no acyclic derivation.
    """
    choices = [tree_greedy(problem)]
    if problem.has_original:
        choices.append(reachable(problem, problem.original))
    reduced = drop_underivable(drop_self_loops(drop_underivable(unreduced(problem))))
    reduced = inline_single_free(inline_free_classes(reduced))
    smaller = reduced.problem
    choices.append(reduced.lift(DagDeriver(smaller).derive(smaller.cost_us)))
    choices.append(reduced.lift(CoverGreedy(smaller).derive()))
    return min(choices, key=lambda choice: dag_cost_us(problem, choice))
