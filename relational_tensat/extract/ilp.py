"""Extraction by integer programming: reduce, pin, take apart, and solve the pieces."""

from __future__ import annotations

import math
import time
from dataclasses import replace

from relational_tensat.extract.greedy_dag import DagDeriver, greedy_dag
from relational_tensat.extract.mip import cut_and_solve
from relational_tensat.extract.pinning import parts, pin_required
from relational_tensat.extract.problem import ExtractionProblem, Ints
from relational_tensat.extract.reduced import Reduced
from relational_tensat.extract.reductions import reduce, reduce_further
from relational_tensat.extract.search import Search
from relational_tensat.extract.solver import Progress, SolverOptions


def search_ilp(
    problem: ExtractionProblem, cycles: str, options: SolverOptions, progress: Progress | None
) -> Search:
    """Search the cheapest acyclic choice with HiGHS.

    Args:
        problem: the e-graph.
        cycles: ``auto``, ``real``, ``int`` or ``none``; only ``auto`` reduces the e-graph first.
        options: limits, threads, seed.
        progress: called with (cost, bound) in µs when one of them improves.

    Raises:
        NoSolutionError: the root has no acyclic derivation.
    """
    search = Search(problem, greedy_dag(problem), progress)
    if search.cost_us == 0:
        return search
    if cycles == "auto":
        _search_pieces(search, _prepared(problem, options), options)
    else:
        cut_and_solve(search, cycles, options)
    return search


def _prepared(problem: ExtractionProblem, options: SolverOptions) -> Reduced:
    """Reduce and pin until the e-graph stays as it is; its root then has one e-node."""

    def stop() -> bool:
        return options.exhausted

    reduced = reduce(problem, stop)
    while True:
        before = reduced.size
        reduced = pin_required(reduced)
        reduced = reduce_further(reduced, stop)
        if reduced.size >= before or stop():
            return pin_required(reduced)


class _Assembly:
    """The pieces' searches, and the choice of the whole that they make up."""

    def __init__(self, whole: Search, reduced: Reduced, start: Ints) -> None:
        self._whole, self._reduced, self._choice = whole, reduced, start.copy()
        root_node = int(start[reduced.problem.root])
        self._constant_us = float(reduced.problem.cost_us[root_node])
        self._pieces = parts(reduced.problem)
        self.searches = [Search(piece.problem, piece.restrict(start)) for piece in self._pieces]
        self._known_cost_us = [search.cost_us for search in self.searches]
        for index, search in enumerate(self.searches):
            search.progress = self._listener(index)

    def sum_up(self) -> None:
        """Tell the whole of the bounds of its pieces."""
        bounds = [search.bound_us for search in self.searches]
        self._whole.raise_bound(math.fsum([self._constant_us, *bounds]))

    def _listener(self, index: int) -> Progress:
        def listen(cost_us: float, _: float) -> None:
            if cost_us < self._known_cost_us[index]:
                self._known_cost_us[index] = cost_us
                self._pieces[index].write(self.searches[index].best, self._choice)
                self._whole.offer(self._reduced.lift(self._choice))
            self.sum_up()

        return listen


def _search_pieces(whole: Search, reduced: Reduced, options: SolverOptions) -> None:
    """Solve the pieces of a reduced e-graph, smallest first, each with its share of the time."""
    start = DagDeriver(reduced.problem).derive(reduced.problem.cost_us)
    whole.offer(reduced.lift(start))
    assembly = _Assembly(whole, reduced, start)
    sizes = [search.problem.n_nodes for search in assembly.searches]
    whole.notes.append(
        f"{reduced.source.n_nodes} e-nodes reduced to {sum(sizes)} in {len(sizes)} pieces"
    )
    for index, search in enumerate(assembly.searches):
        share = options.seconds_left / (len(sizes) - index)
        cut_and_solve(search, "auto", replace(options, deadline=time.monotonic() + share))
    assembly.sum_up()
    whole.notes.extend(dict.fromkeys(note for part in assembly.searches for note in part.notes))
