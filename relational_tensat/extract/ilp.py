"""Extraction by integer programming: the reduced form, or the papers' forms as they are."""

from __future__ import annotations

from relational_tensat.extract.greedy_dag import greedy_dag
from relational_tensat.extract.mip import cut_and_solve, scaled_model
from relational_tensat.extract.pieces import search_pieces
from relational_tensat.extract.problem import ExtractionProblem
from relational_tensat.extract.search import Search
from relational_tensat.extract.solver import Progress, SolverOptions


def search_ilp(
    problem: ExtractionProblem, cycles: str, options: SolverOptions, progress: Progress | None
) -> Search:
    """Search the cheapest acyclic choice with HiGHS; Ctrl-C ends it with the best so far.

    Args:
        problem: the e-graph.
        cycles: ``auto``, ``real``, ``int`` or ``none``; only ``auto`` reduces the e-graph first.
        options: limits, threads, seed.
        progress: called with (cost, bound) in µs when one of them improves.

    Raises:
        NoSolutionError: the root has no acyclic derivation.
    """
    search = Search(problem, greedy_dag(problem), progress)
    if search.closed:
        return search
    try:
        if cycles == "auto":
            search_pieces(search, options)
        else:
            model = scaled_model(problem, cycles, search.cost_us)
            cut_and_solve(search, model, model.columns, model.rows, options)
    except KeyboardInterrupt:
        options.interruption.happened = True
    if options.interruption.happened:
        search.notes.append("interrupted")
    return search
