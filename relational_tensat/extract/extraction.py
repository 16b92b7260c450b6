"""Extraction: the cheapest acyclic choice of e-nodes, greedy or with a proof by HiGHS."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import field, replace
from typing import Any, Protocol

from relational_tensat.base.deadline import now_s
from relational_tensat.base.errors import RelationalTensatError, check_choice
from relational_tensat.base.process import ProcessOptions, no_garbage_collection
from relational_tensat.base.records import record
from relational_tensat.base.watch import Watch
from relational_tensat.extract.exact.ilp import search_ilp
from relational_tensat.extract.exact.solve.search import EQUAL, Progress, SolverOptions
from relational_tensat.extract.extraction_options import EXTRACTORS, ExtractionOptions
from relational_tensat.extract.greedy.bottom_up import tree_greedy
from relational_tensat.extract.greedy.dag import cheapest_greedy
from relational_tensat.extract.problem import (
    Extraction,
    ExtractionProblem,
    Ints,
    dag_cost_us,
    reachable,
    relative_gap,
    without_negative_costs,
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
        options: the extractor, its limits and seconds.
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
    techniques = Techniques(
        frozenset(check_choice("technique", name, TECHNIQUES) for name in disable)
    )
    start_s = now_s()
    step = (watch or Watch()).within(options.time_limit_s)
    task = ExtractionTask(options, process, step, techniques, progress, start)
    extractor: Extractor = EXTRACTORS[options.extractor]
    answer = extractor(problem, task)
    return replace(_result(problem, answer, options.extractor, start_s), **answer.counts)


@record
class ExtractionTask:
    """The inputs of an extractor; arguments of ``extract``.

    Attributes:
        watch: of this extraction: it is over when the time is, or on Ctrl-C.
    """

    options: ExtractionOptions
    process: ProcessOptions
    watch: Watch
    techniques: Techniques
    progress: Progress | None = None
    start: Ints | None = None


@record
class ExtractorAnswer:
    """The answer of an extractor.

    Attributes:
        choice: per class, the chosen e-node, or ``UNUSED``; it has no cycle.
        bound_us: no choice is cheaper, as far as it has proven.
        note: one line for the report.
        counts: further attributes of the ``Extraction``.
    """

    choice: Ints
    bound_us: float = -math.inf
    note: str = ""
    counts: Mapping[str, Any] = field(default_factory=dict)


class Extractor(Protocol):
    """Chooses a graph of an e-graph; ``extract`` finds out itself what that costs, and what is proven."""

    def __call__(self, problem: ExtractionProblem, task: ExtractionTask) -> ExtractorAnswer:
        """Return a choice.

        Raises:
            NoSolutionError: the root has no acyclic derivation.
        """


def greedy(problem: ExtractionProblem, task: ExtractionTask) -> ExtractorAnswer:
    """Choose the e-nodes of least tree cost."""
    plain, notes = _without_negative_costs(problem)
    return ExtractorAnswer(tree_greedy(plain), note="; ".join(notes))


def greedy_dag(problem: ExtractionProblem, task: ExtractionTask) -> ExtractorAnswer:
    """Choose by several greedy ways, which charge shared work once."""
    plain, notes = _without_negative_costs(problem)
    choice, note = cheapest_greedy(plain, _over_after(task.options.time_limit_s))
    return ExtractorAnswer(choice, note="; ".join(filter(None, [note, *notes])))


def ocf(problem: ExtractionProblem, task: ExtractionTask) -> ExtractorAnswer:
    """Choose by Algorithm 2 of the paper of tree search.

    Raises:
        NoSolutionError: it found nothing for the root.
    """
    from relational_tensat.extract.greedy.ocf import greedy_by_history  # few runs ask for it

    plain, notes = _without_negative_costs(problem)
    result = greedy_by_history(plain, _over_after(task.options.time_limit_s))
    ended = "" if result.finished else f"stopped after {result.passes} passes"
    predicted = f"predicted {result.predicted_us:.2f} µs"
    notes = [predicted, ended, *notes]
    return ExtractorAnswer(reachable(plain, result.choice), note="; ".join(filter(None, notes)))


def _without_negative_costs(problem: ExtractionProblem) -> tuple[ExtractionProblem, list[str]]:
    if not problem.has_negative_costs:
        return problem, []
    return without_negative_costs(problem), ["negative costs counted as 0"]


def ilp(problem: ExtractionProblem, task: ExtractionTask) -> ExtractorAnswer:
    """Choose by integer programs, with a proof.

    Raises:
        RelationalTensatError: a plainer method's graph is cheaper.
    """
    step, techniques = task.watch, task.techniques
    limits = SolverOptions(step, task.process.threads, task.process.seed, techniques)
    with step.watching(), no_garbage_collection():  # it took 40 % of large searches
        search = search_ilp(problem, task.options.ilp_cycles, limits, task.progress, task.start)
    cost_us = dag_cost_us(problem, reachable(problem, search.best))
    if cost_us > search.baseline_us + EQUAL * abs(search.baseline_us):
        raise RelationalTensatError(
            f"the extracted graph costs {cost_us} µs, a plainer method's {search.baseline_us}"
        )
    counts = {
        "interrupted": step.happened,
        "reductions": dict(techniques.dropped),
        "reduced_size": techniques.size_after,
        "components": techniques.components,
        "distinct_components": techniques.distinct,
        "simplex_iterations": limits.work.simplex_iterations,
        "branch_nodes": limits.work.branch_nodes,
    }
    return ExtractorAnswer(search.best, search.bound_us, "; ".join(search.notes), counts)


def _over_after(seconds: float) -> Callable[[], bool]:
    """Return a question whether so many seconds have passed since it was asked first."""
    times_s: list[float] = []

    def is_over() -> bool:
        times_s.append(now_s())
        del times_s[1:-1]
        return times_s[-1] - times_s[0] > seconds or seconds <= 0

    return is_over


def _result(
    problem: ExtractionProblem, answer: ExtractorAnswer, method: str, start_s: float
) -> Extraction:
    """Recompute cost and acyclicity from the choice itself, and say what is proven."""
    choice = reachable(problem, answer.choice)
    cost_us = dag_cost_us(problem, choice)
    bound_us = min(max(answer.bound_us, problem.least_cost_us), cost_us)
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
        note=answer.note,
        size=size_of([problem]),
    )


PROVEN_GAP = 1e-8
"""HiGHS proves up to its tolerances; within this fraction of the cost, a bound is met."""
