"""Extraction: the cheapest acyclic choice of e-nodes, greedy or with a proof by HiGHS."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import replace

from relational_tensat.errors import UsageError, nearest
from relational_tensat.extract.greedy import tree_greedy
from relational_tensat.extract.greedy_dag import greedy_dag
from relational_tensat.extract.ilp import search_ilp
from relational_tensat.extract.problem import (
    UNUSED,
    Extraction,
    ExtractionProblem,
    Ints,
    dag_cost_us,
    is_acyclic,
    reachable,
    relative_gap,
    topological_order,
)
from relational_tensat.extract.solver import Progress, ShouldStop, SolverOptions
from relational_tensat.extract.techniques import TECHNIQUES, Techniques

__all__ = [
    "CYCLES",
    "METHODS",
    "TECHNIQUES",
    "UNUSED",
    "Extraction",
    "ExtractionProblem",
    "dag_cost_us",
    "extract",
    "is_acyclic",
    "reachable",
    "relative_gap",
    "topological_order",
]

METHODS: tuple[str, ...] = ("greedy", "greedy-dag", "ilp")
CYCLES: tuple[str, ...] = ("auto", "real", "int", "none")

_GREEDY: dict[str, Callable[[ExtractionProblem], Ints]] = {
    "greedy": tree_greedy,
    "greedy-dag": greedy_dag,
}


def extract(
    problem: ExtractionProblem,
    method: str = "ilp",
    *,
    cycles: str = "auto",
    time_limit_s: float = 60.0,
    threads: int = 1,
    seed: int = 0,
    should_stop: ShouldStop | None = None,
    progress: Progress | None = None,
    without: Collection[str] = (),
) -> Extraction:
    """Choose the cheapest graph of an e-graph.

    Args:
        problem: the e-graph with its costs.
        method: ``greedy`` (least tree cost), ``greedy-dag`` (shared work charged once, never
            worse than the original graph) or ``ilp`` (proven by HiGHS, never worse than
            ``greedy-dag``).
        cycles: for ``ilp``, how circles are kept out: ``auto`` (reductions, and cuts for circles
            found), ``real`` or ``int`` (the papers' topological variables over all classes) or
            ``none`` (no rows against circles; a circular answer is repaired by cuts).
        time_limit_s: wall seconds for ``ilp``; the best choice so far is returned then.
        threads: HiGHS threads. With 1, equal inputs give equal results (time limits aside).
        seed: HiGHS random seed.
        should_stop: asked often during ``ilp``; True returns the best choice so far.
        progress: called with (cost, bound) in µs whenever ``ilp`` improves one of them.
        without: names of ``TECHNIQUES`` that ``ilp`` shall do without, for comparison.

    Raises:
        UsageError: an unknown method, technique or way with cycles, or a limit that makes no sense.
        NoSolutionError: the root has no acyclic derivation.
    """
    _check_name("extractor", method, METHODS)
    _check_name("cycles", cycles, CYCLES)
    if not time_limit_s >= 0:
        raise UsageError(f"extraction time limit: {time_limit_s} s, expected a number >= 0")
    if threads < 1:
        raise UsageError(f"threads: {threads}, expected at least 1")
    techniques = Techniques(frozenset(without))
    begin = time.monotonic()
    if method in _GREEDY:
        choice = _GREEDY[method](problem)
        return _result(problem, choice, 0.0, method, begin, "")
    limits = SolverOptions(begin + time_limit_s, threads, seed, should_stop, techniques=techniques)
    search = search_ilp(problem, cycles, limits, progress)
    found = _result(problem, search.best, search.bound_us, method, begin, "; ".join(search.notes))
    return replace(
        found,
        reductions=dict(techniques.dropped),
        size=techniques.whole,
        reduced_size=techniques.left,
    )


def _result(
    problem: ExtractionProblem, choice: Ints, bound_us: float, method: str, begin: float, note: str
) -> Extraction:
    """Recompute cost and acyclicity from the choice itself, and say what is proven."""
    choice = reachable(problem, choice)
    cost_us = dag_cost_us(problem, choice)
    bound_us = min(bound_us, cost_us)
    gap = relative_gap(cost_us, bound_us)
    optimal = cost_us == 0.0 or (bound_us > 0.0 and gap <= PROVEN_GAP)
    return Extraction(
        choice=choice,
        cost_us=cost_us,
        bound_us=cost_us if optimal else bound_us,
        gap=0.0 if optimal else gap,
        optimal=optimal,
        method=method,
        seconds=time.monotonic() - begin,
        note=note,
    )


PROVEN_GAP = 1e-8
"""HiGHS proves up to its tolerances; within this fraction of the cost, a bound is met."""


def _check_name(what: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise UsageError(
            f"unknown {what} {name!r}{nearest(name, known)}, expected one of {', '.join(known)}"
        )
