"""Extraction by integer programming: the reduced form, or the papers' forms as they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from relational_tensat.extract.greedy_dag import greedy_choices
from relational_tensat.extract.mip import cut_and_solve, scaled_model
from relational_tensat.extract.ordering import WITHIN
from relational_tensat.extract.pieces import search_pieces
from relational_tensat.extract.problem import ExtractionProblem, Ints
from relational_tensat.extract.search import Search
from relational_tensat.extract.solver import Progress, SolverOptions
from relational_tensat.extract.timekeeping import OutOfTimeError


def search_ilp(
    problem: ExtractionProblem,
    cycles: str,
    options: SolverOptions,
    progress: Progress | None,
    start: Ints | None = None,
) -> Search:
    """Search the cheapest acyclic choice with HiGHS; Ctrl-C ends it with the best so far.

    The first choice is there at once. Whatever ends the search, it is not worse than the original
    graph, than tree-greedy and than ``start``.

    Args:
        problem: the e-graph.
        cycles: ``auto``, ``order`` or ``cuts`` (of ``ordering.WITHIN``), which reduce the e-graph
            first; ``real``, ``int`` or ``none``.
        options: limits, threads, seed.
        progress: called with (cost, bound) in µs when one of them improves.
        start: an acyclic choice to begin from.

    Raises:
        NoSolutionError: the root has no acyclic derivation.
    """
    choices = greedy_choices(problem, lambda: options.exhausted)
    plain = 1 + problem.has_original  # tree-greedy is the last of these
    if start is None:
        start, plain = next(choices), plain - 1
    search = Search(problem, start, progress)
    for choice in islice(choices, plain):
        search.offer(choice)
    search.baseline_us = search.cost_us
    try:
        with options.interruption.raising():
            _search(search, choices, cycles, options)
    except KeyboardInterrupt:
        options.interruption.survive()
    except OutOfTimeError as limit:
        search.notes.append(str(limit))
    if options.interruption.happened:
        search.notes.append("interrupted")
    return search


def _search(search: Search, choices: Iterator[Ints], cycles: str, options: SolverOptions) -> None:
    """Try what else a plain method finds, then improve the best by integer programming."""
    for choice in choices:
        search.offer(choice)
    if search.closed:
        return
    if options.exhausted:
        search.notes.append("no time was left beyond the greedy methods: nothing is proven")
        return
    if cycles in WITHIN:
        search_pieces(search, replace(options, cycles=cycles))
    else:
        model = scaled_model(search.problem, cycles, search.cost_us)
        cut_and_solve(search, model, model.columns, model.rows, options)
