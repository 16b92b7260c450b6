"""Sharing-aware greedy extraction: several ways, and never worse than the original."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from relational_tensat.base.deadline import Check, OutOfTimeError
from relational_tensat.base.errors import NoSolutionError
from relational_tensat.base.process import no_garbage_collection
from relational_tensat.extract.exact.reduce.reductions.inline import (
    inline_free_classes,
    inline_single_free,
)
from relational_tensat.extract.exact.reduce.reductions.needless import (
    drop_self_loops,
    drop_underivable,
)
from relational_tensat.extract.exact.reduce.smaller_problem import unreduced
from relational_tensat.extract.greedy.bottom_up import DagDeriver, settle_by_tree_cost
from relational_tensat.extract.greedy.cover import CoverGreedy
from relational_tensat.extract.greedy.improve import Improver
from relational_tensat.extract.problem import (
    UNUSED,
    ExtractionProblem,
    Ints,
    dag_cost_us,
    reachable,
)

Stop = Callable[[], bool]

LARGEST_COVERED = 12_000
"""Classes of the largest reduced e-graph that is covered top-down: that takes time by their square."""

LARGEST_UNLIMITED = 20_000
"""E-nodes of the largest e-graph whose greedy choices are all made whatever the limit of time."""

LARGEST_REDUCED = 200_000
"""E-nodes of the largest e-graph that is reduced before it is derived bottom-up."""


def cheapest_greedy(problem: ExtractionProblem, exhausted: Stop | None = None) -> tuple[Ints, str]:
    """Return the cheapest of the greedy choices and the original graph, pruned, and what made it.

    Args:
        problem: the e-graph.
        exhausted: see ``named_choices``.

    Raises:
        NoSolutionError: the root has no acyclic derivation.
    """
    cheapest = _Cheapest(problem)
    with no_garbage_collection(), suppress(OutOfTimeError):
        for name, choice in named_choices(problem, exhausted):
            cheapest.offer(name, choice)
    return cheapest.choice, cheapest.name


def greedy_choices(problem: ExtractionProblem, exhausted: Stop | None = None) -> Iterator[Ints]:
    """Yield what ``cheapest_greedy`` chooses from: the original graph if it is known, tree-greedy, others.

    Args:
        problem: the e-graph.
        exhausted: see ``named_choices``.

    Raises:
        NoSolutionError: the root has no acyclic derivation.
        OutOfTimeError: see ``named_choices``.
    """
    for _, choice in named_choices(problem, exhausted):
        yield choice


def named_choices(
    problem: ExtractionProblem, exhausted: Stop | None = None
) -> Iterator[tuple[str, Ints]]:
    """Yield the same choices, each with what made it, for a report.

    Args:
        problem: the e-graph.
        exhausted: asked while choices of e-graphs above ``LARGEST_UNLIMITED`` are made and improved,
            which may take minutes; True ends it. The original graph and tree-greedy are there first.

    Raises:
        NoSolutionError: the root has no acyclic derivation.
        OutOfTimeError: ``exhausted`` returned true while a choice was made.
    """
    if problem.n_nodes <= LARGEST_UNLIMITED:
        exhausted = None
    cheapest = _Cheapest(problem)
    if problem.has_original:
        cheapest.offer("the original graph", reachable(problem, problem.original))
        yield cheapest.name, cheapest.choice
    by_tree_cost = settle_by_tree_cost(problem, None)
    for name, choice in _constructed(problem, by_tree_cost[0], _check(exhausted)):
        cheapest.offer(name, choice)
        yield name, choice
    # A problem too large for a method of more than linear time is still improved in place.
    improver = Improver(problem, *by_tree_cost, exhausted)
    for variant in (IMPROVED, SPREAD):
        if exhausted is not None and exhausted():
            return
        best = cheapest.choice
        choice = improver.improve(best if variant == IMPROVED else improver.spread(best))
        name = f"{cheapest.name}, {variant}"
        cheapest.offer(name, choice)
        yield name, choice


IMPROVED = "improved in place"
SPREAD = "spread by flow and improved again"


def _check(exhausted: Stop | None) -> Check:
    def check() -> None:
        if exhausted is not None and exhausted():
            raise OutOfTimeError("no time was left for all greedy methods")

    return check


def _constructed(
    problem: ExtractionProblem, by_tree_cost: Ints, check: Check
) -> Iterator[tuple[str, Ints]]:
    """Yield the choices that are made from nothing.

    Args:
        problem: the e-graph.
        by_tree_cost: per class, its e-node of least tree cost.
        check: asked often.
    """
    if by_tree_cost[problem.root] == UNUSED:
        raise NoSolutionError(f"the root class {problem.root} has no acyclic derivation")
    yield "tree-greedy", reachable(problem, by_tree_cost)
    check()
    reduced = unreduced(problem)
    if problem.n_nodes <= LARGEST_REDUCED:
        reduced = drop_underivable(drop_self_loops(drop_underivable(reduced)))
        reduced = inline_single_free(inline_free_classes(reduced))
    smaller = reduced.problem
    deriver = DagDeriver(smaller, check=check)
    choice = reduced.lift(deriver.derive(smaller.cost_us))
    yield "bottom-up" if deriver.exact else OUTGROWN, choice
    if problem.n_nodes <= LARGEST_REDUCED and smaller.n_classes <= LARGEST_COVERED:
        yield "top-down covering", reduced.lift(CoverGreedy(smaller, check).derive())


OUTGROWN = "bottom-up, by costliest children where the sets of classes outgrew their limit"


class _Cheapest:
    def __init__(self, problem: ExtractionProblem) -> None:
        self._problem = problem
        self.cost_us = float("inf")
        self.name = ""
        self.choice: Ints = problem.original

    def offer(self, name: str, choice: Ints) -> None:
        cost_us = dag_cost_us(self._problem, choice)
        if cost_us < self.cost_us:
            self.name, self.choice, self.cost_us = name, choice, cost_us
