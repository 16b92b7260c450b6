"""Extraction: the cheapest acyclic choice of e-nodes, greedy or with a proof by HiGHS."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import replace

from relational_tensat.base.collector import no_garbage_collection
from relational_tensat.base.errors import RelationalTensatError, UsageError, nearest
from relational_tensat.base.interruption import Interruption
from relational_tensat.extract.exact.ilp import search_ilp
from relational_tensat.extract.exact.solve.search import EQUAL
from relational_tensat.extract.exact.solve.solver import Progress, ShouldStop, SolverOptions
from relational_tensat.extract.greedy.dag import cheapest_greedy
from relational_tensat.extract.greedy.in_sql import InTables, greedy_in_sql
from relational_tensat.extract.greedy.tree import tree_greedy
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
from relational_tensat.extract.techniques import TECHNIQUES, Techniques, size_of

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

METHODS: tuple[str, ...] = ("greedy", "greedy-dag", "ilp", "greedy-sql", "greedy-dag-sql")
CYCLES: tuple[str, ...] = ("auto", "order", "cuts", "real", "int", "none")


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
    start: Ints | None = None,
    interruption: Interruption | None = None,
    tables: InTables | None = None,
) -> Extraction:
    """Choose the cheapest graph of an e-graph.

    Ctrl-C ends ``ilp`` with the best choice so far; pressed again, it ends the program.

    Args:
        problem: the e-graph with its costs.
        method: ``greedy`` (least tree cost), ``greedy-dag`` (shared work charged once, never
            worse than the original graph) or ``ilp`` (proven by HiGHS, never worse than
            ``greedy-dag``); ``greedy-sql`` and ``greedy-dag-sql`` are computed in DuckDB, the
            latter bottom-up only.
        cycles: for ``ilp``, how circles are kept out of strongly connected components: ``order``
            (topological variables), ``cuts`` (for the circles that are found) or ``auto`` (by the
            size of the component); or, without reductions, as the papers do: ``real`` or ``int``
            (topological variables over all classes) or ``none`` (a circular answer is repaired by
            cuts).
        time_limit_s: wall seconds for ``ilp``, and for improving very large choices of
            ``greedy-dag``; the best choice so far is returned then. For SQL too, whose work is done
            in Python if they are not enough.
        threads: HiGHS threads. With 1, equal inputs give equal results (time limits aside).
        seed: HiGHS random seed.
        should_stop: asked often during ``ilp``; True returns the best choice so far.
        progress: called with (cost, bound) in µs whenever ``ilp`` improves one of them.
        without: names of ``TECHNIQUES`` that ``ilp`` shall do without, for comparison.
        start: an acyclic choice for ``ilp`` to begin from; the result is never worse.
        interruption: shared by all that one Ctrl-C shall end.
        tables: where the e-graph is in tables, these, so that SQL works on them directly.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed twice.
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
    if method != "ilp":
        choice, note = _greedy(problem, method, time_limit_s, tables)
        return _result(problem, choice, 0.0, method, begin, note)
    interruption = interruption or Interruption()
    limits = SolverOptions(
        begin + time_limit_s, threads, seed, should_stop, interruption, techniques
    )
    with interruption.watching(), no_garbage_collection():  # it took 40 % of large searches
        search = search_ilp(problem, cycles, limits, progress, start)
    found = _result(problem, search.best, search.bound_us, method, begin, "; ".join(search.notes))
    if found.cost_us > search.baseline_us * (1 + EQUAL):
        raise RelationalTensatError(
            f"the extracted graph costs {found.cost_us} µs, a plainer method's {search.baseline_us}"
        )
    return replace(
        found,
        interrupted=interruption.happened,
        reductions=dict(techniques.dropped),
        reduced_size=techniques.left,
    )


def _greedy(
    problem: ExtractionProblem, method: str, time_limit_s: float, tables: InTables | None
) -> tuple[Ints, str]:
    """Return what a greedy method chooses, and what made it."""
    if method == "greedy":
        return tree_greedy(problem), ""
    if method == "greedy-dag":
        return cheapest_greedy(problem, _over_after(time_limit_s))
    shared = method == "greedy-dag-sql"
    return greedy_in_sql(problem, tables, shared=shared, time_limit_s=time_limit_s)


def _over_after(seconds: float) -> Callable[[], bool]:
    """Return a question whether so many seconds have passed since it was asked first."""
    asked: list[float] = []

    def is_over() -> bool:
        asked.append(time.monotonic())
        del asked[1:-1]
        return asked[-1] - asked[0] > seconds or seconds <= 0

    return is_over


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
        size=size_of([problem]),
    )


PROVEN_GAP = 1e-8
"""HiGHS proves up to its tolerances; within this fraction of the cost, a bound is met."""


def _check_name(what: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise UsageError(
            f"unknown {what} {name!r}{nearest(name, known)}, expected one of {', '.join(known)}"
        )
