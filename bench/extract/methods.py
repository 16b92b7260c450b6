"""The extractors that are compared, each run on one e-graph and its answer checked."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.common.stopwatch import stopwatch
from bench.extract.check import chosen_cost, is_cyclic
from bench.extract.papers import solve_paper_form
from relational_tensat.base.errors import NoSolutionError, RelationalTensatError
from relational_tensat.base.process import ProcessOptions
from relational_tensat.base.watch import Watch
from relational_tensat.extract import ExtractionOptions, extract
from relational_tensat.extract.greedy.ocf import greedy_by_history
from relational_tensat.extract.problem import ExtractionProblem, Ints, relative_gap

_AGREE = 1e-6
"""Costs and bounds that differ by less than this fraction agree: solvers have tolerances."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of an extractor. The attributes are keys of the results that the bench writes.

    Attributes:
        method: one of ``METHODS``.
        status: ``done`` (nothing was to be proven), ``optimal``, ``time-out`` (with the best so
            far), ``no solution`` (a time-out before any), ``cyclic`` (the answer is no graph) or
            ``skipped``.
        cost: of the choice, re-computed from it by other code; None where there is no graph.
        bound: no choice is cheaper than this (0 where nothing was proven).
        gap: (cost - bound) / cost; None where there is no cost, or nothing to be proven.
        cpu_s, wall_s: seconds of the extraction alone; CPU of all threads.
        reduced: e-nodes, e-classes and edges after the reductions; only of ours.
        dropped: e-nodes that each reduction took away; only of ours.
        simplex_iterations, branch_nodes: of HiGHS; only of ours.
        note: the extractor's note.
    """

    method: str
    status: str
    cost: float | None = None
    bound: float = 0.0
    gap: float | None = None
    cpu_s: float = 0.0
    wall_s: float = 0.0
    reduced: tuple[int, int, int] | None = None
    dropped: dict[str, int] = field(default_factory=dict)
    simplex_iterations: int = 0
    branch_nodes: int = 0
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the keys of the documented schema."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Raw:
    """An answer before it is checked."""

    choice: Ints | None
    bound: float
    status: str
    reduced: tuple[int, int, int] | None = None
    dropped: dict[str, int] = field(default_factory=dict)
    note: str = ""
    simplex_iterations: int = 0
    branch_nodes: int = 0


def run_method(
    problem: ExtractionProblem, method: str, time_limit_s: float, *, threads: int = 1
) -> Answer:
    """Run one of ``METHODS`` and check its answer.

    Args:
        problem: the e-graph.
        method: its name.
        time_limit_s: wall seconds of the extraction.
        threads: HiGHS threads.
    """
    gc.collect()  # what earlier runs left behind is not this one's
    with stopwatch() as watch:
        try:
            raw = METHODS[method](problem, time_limit_s, threads)
        except NoSolutionError as error:
            raw = _Raw(None, 0.0, "no solution", note=str(error))
    return _checked(problem, method, raw, watch.cpu_s, watch.wall_s)


def ours_without(
    problem: ExtractionProblem, technique: str | None, time_limit_s: float, *, threads: int = 1
) -> Answer:
    """Run our exact extractor without one of its techniques (None: with all)."""
    left_out = () if technique is None else (technique,)
    with stopwatch() as watch:
        raw = _ours(problem, time_limit_s, threads, left_out)
    return _checked(problem, technique or "all", raw, watch.cpu_s, watch.wall_s)


def contradictions(answers: list[Answer], optimum: float | None) -> list[str]:
    """Return, in words, where answers to one e-graph cannot all be true.

    A bound above a cost that was reached, a cost below a known optimum, or an optimal cost above it.
    """
    reached = [(result.cost, result.method) for result in answers if result.cost is not None]
    lines = []
    if optimum is not None:
        lines = [
            f"{method} costs {cost:.6f}, less than the planted {optimum:.6f}"
            for cost, method in reached
            if cost < optimum * (1 - _AGREE) - _AGREE
        ]
        reached.append((optimum, "the planted graph"))
    lines += [
        f"{answer.method} bounds by {answer.bound:.6f} what {method} has at {cost:.6f}"
        for answer in answers
        for cost, method in reached
        if answer.bound > cost * (1 + _AGREE) + _AGREE
    ]
    return lines


def _checked(
    problem: ExtractionProblem, method: str, raw: _Raw, cpu_s: float, wall_s: float
) -> Answer:
    cost = None if raw.choice is None else chosen_cost(problem, raw.choice)
    status = raw.status
    if raw.choice is not None and cost is None:
        status = "cyclic"
    proves = method not in _HEURISTICS and cost is not None
    return Answer(
        method=method,
        status=status,
        cost=cost,
        bound=raw.bound,
        gap=relative_gap(cost, raw.bound) if proves and cost is not None else None,
        cpu_s=cpu_s,
        wall_s=wall_s,
        reduced=raw.reduced,
        dropped=raw.dropped,
        simplex_iterations=raw.simplex_iterations,
        branch_nodes=raw.branch_nodes,
        note=raw.note,
    )


def _heuristic(name: str) -> Callable[[ExtractionProblem, float, int], _Raw]:
    def run(problem: ExtractionProblem, time_limit_s: float, threads: int) -> _Raw:
        return _Raw(extract(problem, ExtractionOptions(name)).choice, 0.0, "done")

    return run


def _algorithm_2(problem: ExtractionProblem, time_limit_s: float, threads: int) -> _Raw:
    step = Watch().within(time_limit_s)
    result = greedy_by_history(problem, lambda: step.is_over)
    status = "done" if result.finished else "time-out"
    return _Raw(result.choice, 0.0, status, note=f"{result.passes} passes")


def _paper(form: str) -> Callable[[ExtractionProblem, float, int], _Raw]:
    def run(problem: ExtractionProblem, time_limit_s: float, threads: int) -> _Raw:
        result = solve_paper_form(problem, form, time_limit_s, threads=threads)
        status = "optimal" if result.proven else "time-out"
        if result.choice is None:
            status = "no solution"
        return _Raw(result.choice, result.bound, status, note=f"HiGHS: {result.status}")

    return run


def _plain(problem: ExtractionProblem, time_limit_s: float, threads: int) -> _Raw:
    """The papers' program with integer topological variables where there are cycles, else without."""
    return _paper("int" if is_cyclic(problem) else "none")(problem, time_limit_s, threads)


def _ours(
    problem: ExtractionProblem,
    time_limit_s: float,
    threads: int,
    left_out: tuple[str, ...] = (),
    cycles: str = "auto",
) -> _Raw:
    extraction = extract(
        problem,
        ExtractionOptions(ilp_cycles=cycles, time_limit_s=time_limit_s),
        ProcessOptions(threads=threads),
        disable=left_out,
    )
    recomputed = chosen_cost(problem, extraction.choice)
    if recomputed is None or abs(recomputed - extraction.cost_us) > _AGREE * max(
        1.0, extraction.cost_us
    ):
        raise RelationalTensatError(
            f"the extractor says its choice costs {extraction.cost_us}, the choice itself {recomputed}"
        )
    status = "optimal" if extraction.optimal else "time-out"
    return _Raw(
        extraction.choice,
        extraction.bound_us,
        status,
        extraction.reduced_size if any(extraction.size) else None,
        dict(extraction.reductions),
        extraction.note,
        extraction.simplex_iterations,
        extraction.branch_nodes,
    )


def _package_form(cycles: str) -> Callable[[ExtractionProblem, float, int], _Raw]:
    def run(problem: ExtractionProblem, time_limit_s: float, threads: int) -> _Raw:
        return _ours(problem, time_limit_s, threads, cycles=cycles)

    return run


_HEURISTICS = ("greedy", "algorithm-2", "greedy-dag")
#: The papers' integer programs, as the papers write them.
PAPER_METHODS = ("paper-real", "paper-int", "paper-none")
#: What runs without being asked for; the others are the papers' forms as the package has them: begun
#: from greedy-dag, with stronger rows, and ``ilp-none`` with cuts against the cycles it finds.
DEFAULT_METHODS = (*_HEURISTICS, *PAPER_METHODS, "ours")
METHODS: dict[str, Callable[[ExtractionProblem, float, int], _Raw]] = {
    "greedy": _heuristic("greedy"),
    "algorithm-2": _algorithm_2,
    "greedy-dag": _heuristic("greedy-dag"),
    **{f"paper-{form}": _paper(form) for form in ("real", "int", "none")},
    "highs": _plain,
    **{f"ilp-{form}": _package_form(form) for form in ("real", "int", "none")},
    "ours": _ours,
}
