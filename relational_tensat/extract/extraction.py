"""Extraction: the cheapest acyclic choice of e-nodes, greedy or with a proof by HiGHS."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from relational_tensat.base.deadline import now_s
from relational_tensat.base.errors import RelationalTensatError, check_choice
from relational_tensat.base.process import ProcessOptions, no_garbage_collection
from relational_tensat.base.watch import Watch
from relational_tensat.extract.exact.ilp import search_ilp
from relational_tensat.extract.exact.signed_search import without_negative_costs
from relational_tensat.extract.exact.solve.search import EQUAL, Progress, SolverOptions
from relational_tensat.extract.extraction_options import ExtractionOptions
from relational_tensat.extract.greedy.bottom_up import tree_greedy
from relational_tensat.extract.greedy.dag import cheapest_greedy
from relational_tensat.extract.problem import (
    Extraction,
    ExtractionProblem,
    Ints,
    dag_cost_us,
    reachable,
    relative_gap,
)
from relational_tensat.extract.techniques import TECHNIQUES, Techniques, size_of


def extract(
    problem: ExtractionProblem,
    options: ExtractionOptions | None = None,
    process: ProcessOptions | None = None,
    *,
    watch: Watch | None = None,
    progress: Progress | None = None,
    start: Ints | None = None,
    disable: Collection[str] = (),
) -> Extraction:
    """Choose the cheapest graph of an e-graph.

    Ctrl-C ends ``ilp`` with the best choice so far; pressed again, it ends the program.

    Args:
        problem: the e-graph with its costs.
        options: the extractor, what it may do and how long.
        process: threads and seed of HiGHS. With one thread, equal inputs give equal results (time limits
            aside).
        watch: the run's, so that one Ctrl-C ends all that share it; where it is over before the time limit,
            ``ilp`` returns the best choice so far.
        progress: called with (cost, bound) in µs whenever ``ilp`` improves one of them.
        start: an acyclic choice for ``ilp`` to begin from; the result is never worse.
        disable: techniques that ``ilp`` does without, for comparison.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed twice.
        NoSolutionError: the root has no acyclic derivation.
        UsageError: a technique does not exist.
    """
    options, process = options or ExtractionOptions(), process or ProcessOptions()
    method, time_limit_s = options.extractor, options.time_limit_s
    techniques = Techniques(
        frozenset(check_choice("technique", name, TECHNIQUES) for name in disable)
    )
    start_s = now_s()
    if method != "ilp":
        choice, note = _greedy(problem, method, time_limit_s)
        return _result(problem, choice, problem.least_cost_us, method, start_s, note)
    step = (watch or Watch()).within(time_limit_s)
    limits = SolverOptions(step, process.threads, process.seed, techniques)
    with step.watching(), no_garbage_collection():  # it took 40 % of large searches
        search = search_ilp(problem, options.ilp_cycles, limits, progress, start)
    extraction = _result(
        problem, search.best, search.bound_us, method, start_s, "; ".join(search.notes)
    )
    if extraction.cost_us > search.baseline_us + EQUAL * abs(search.baseline_us):
        raise RelationalTensatError(
            f"the extracted graph costs {extraction.cost_us} µs, a plainer method's {search.baseline_us}"
        )
    return replace(
        extraction,
        interrupted=step.happened,
        reductions=dict(techniques.dropped),
        reduced_size=techniques.size_after,
        components=techniques.components,
        distinct_components=techniques.distinct,
        simplex_iterations=limits.work.simplex_iterations,
        branch_nodes=limits.work.branch_nodes,
    )


def _greedy(problem: ExtractionProblem, method: str, time_limit_s: float) -> tuple[Ints, str]:
    """Return what a greedy method chooses, and what made it."""
    if problem.has_negative_costs:
        choice, note = _greedy(without_negative_costs(problem), method, time_limit_s)
        return choice, "; ".join(filter(None, [note, "negative costs counted as 0"]))
    if method == "greedy":
        return tree_greedy(problem), ""
    return cheapest_greedy(problem, _over_after(time_limit_s))


def _over_after(seconds: float) -> Callable[[], bool]:
    """Return a question whether so many seconds have passed since it was asked first."""
    times_s: list[float] = []

    def is_over() -> bool:
        times_s.append(now_s())
        del times_s[1:-1]
        return times_s[-1] - times_s[0] > seconds or seconds <= 0

    return is_over


def _result(
    problem: ExtractionProblem,
    choice: Ints,
    bound_us: float,
    method: str,
    start_s: float,
    note: str,
) -> Extraction:
    """Recompute cost and acyclicity from the choice itself, and say what is proven."""
    choice = reachable(problem, choice)
    cost_us = dag_cost_us(problem, choice)
    bound_us = min(bound_us, cost_us)
    gap = relative_gap(cost_us, bound_us)
    optimal = gap <= PROVEN_GAP
    return Extraction(
        choice=choice,
        cost_us=cost_us,
        bound_us=cost_us if optimal else bound_us,
        gap=0.0 if optimal else gap,
        optimal=optimal,
        method=method,
        seconds=now_s() - start_s,
        note=note,
        size=size_of([problem]),
    )


PROVEN_GAP = 1e-8
"""HiGHS proves up to its tolerances; within this fraction of the cost, a bound is met."""
