"""Extraction by integer programming: reduce, start from greedy, solve, cut circles, repeat."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from relational_tensat.errors import RelationalTensatError
from relational_tensat.extract.formulation import Formulation, formulate
from relational_tensat.extract.greedy_dag import DagDeriver, cheaper, greedy_dag
from relational_tensat.extract.loops import circular_sets, loop_cuts
from relational_tensat.extract.problem import (
    ExtractionProblem,
    Ints,
    dag_cost_us,
    is_acyclic,
)
from relational_tensat.extract.reduced import Reduced, unreduced
from relational_tensat.extract.reductions import reduce
from relational_tensat.extract.solver import (
    MipResult,
    Progress,
    SolverOptions,
    solve_mip,
    stack_rows,
)

_EQUAL = 1e-9
"""Costs that differ by less than this fraction are the same cost."""

_TOLERANCE = 1e-5
"""How far, as a fraction, HiGHS's objective may be off by values like 0.999999."""


@dataclass
class Search:
    """The best choice of the given e-graph so far, the best bound, and who wants to hear of them.

    Attributes:
        problem: the e-graph as given.
        best: the cheapest choice found.
        bound_us: proven lower bound.
        progress: called with (cost, bound) in µs when one of them improves.
    """

    problem: ExtractionProblem
    best: Ints
    progress: Progress | None
    bound_us: float = 0.0
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cost_us = dag_cost_us(self.problem, self.best)
        self._tell()

    def offer(self, choice: Ints) -> None:
        """Take an acyclic choice if it is cheaper."""
        cost = dag_cost_us(self.problem, choice)
        if cost < self.cost_us:
            self.best, self.cost_us = choice, cost
            self._tell()

    def raise_bound(self, bound_us: float) -> None:
        """Take a proven bound if it is higher."""
        bound_us = min(bound_us, self.cost_us)
        if bound_us > self.bound_us:
            self.bound_us = bound_us
            self._tell()

    @property
    def closed(self) -> bool:
        """Whether nothing cheaper exists."""
        return self.bound_us >= self.cost_us * (1 - _EQUAL)

    def _tell(self) -> None:
        if self.progress is not None:
            self.progress(self.cost_us, self.bound_us)


def search_ilp(
    problem: ExtractionProblem, cycles: str, options: SolverOptions, progress: Progress | None
) -> Search:
    """Search the cheapest acyclic choice with HiGHS.

    Args:
        problem: the e-graph.
        cycles: ``auto``, ``real``, ``int`` or ``none``.
        options: limits, threads, seed.
        progress: called with (cost, bound) in µs when one of them improves.

    Raises:
        NoSolutionError: the root has no acyclic derivation.
    """
    search = Search(problem, greedy_dag(problem), progress)
    if search.closed:
        return search
    if cycles == "auto":
        reduced = reduce(problem, lambda: options.exhausted)
        search.notes.append(
            f"reduced to {reduced.problem.n_nodes} e-nodes in {reduced.problem.n_classes} classes"
        )
    else:
        reduced = unreduced(problem)
    _cut_and_solve(search, reduced, cycles, options)
    return search


def _cut_and_solve(search: Search, reduced: Reduced, cycles: str, options: SolverOptions) -> None:
    """Solve, forbid the circles of the solution, and solve again until it has none."""
    deriver = DagDeriver(reduced.problem)
    start = deriver.derive(reduced.problem.cost_us)
    search.offer(reduced.lift(start))
    scale = 1e3 / search.cost_us
    model = formulate(reduced.problem, cycles, scale)
    rows = model.rows
    rounds = 0
    while not search.closed and not options.exhausted:
        result = solve_mip(
            model.columns,
            rows,
            options,
            start=model.point(start),
            progress=_scaled(search, scale),
        )
        if result.infeasible:
            raise RelationalTensatError("HiGHS calls a model infeasible that has a solution")
        circles = _take(search, reduced, model, deriver, result)
        search.raise_bound(_bound_us(reduced, model, result, circles))
        start = _better_start(reduced.problem, start, model, result)
        if not result.proven or not circles:
            search.notes.append(f"HiGHS: {result.status}")
            break
        rounds += 1
        rows = stack_rows([rows, loop_cuts(reduced.problem, circles)])
    if rounds:
        search.notes.append(f"{rounds} rounds of cuts against circles")


def _take(
    search: Search,
    reduced: Reduced,
    model: Formulation,
    deriver: DagDeriver,
    result: MipResult,
) -> list[list[int]]:
    """Offer what HiGHS found, repaired where it is circular; return its circles."""
    if result.values is None:
        return []
    choice = model.chosen(result.values)
    circles = circular_sets(reduced.problem, choice)
    if circles:
        discounted = reduced.problem.cost_us * (1 - result.values[: reduced.problem.n_nodes])
        choice = deriver.derive(np.maximum(discounted, 0.0))
    search.offer(reduced.lift(choice))
    return circles


def _bound_us(
    reduced: Reduced, model: Formulation, result: MipResult, circles: list[list[int]]
) -> float:
    """Return the bound in µs, free of the solver's tolerances where its optimum is a choice."""
    bound = result.bound / model.scale
    if result.proven and result.values is not None and not circles:
        cost = dag_cost_us(reduced.problem, model.chosen(result.values))
        if abs(cost - bound) <= _TOLERANCE * cost:
            return cost
    return bound


def _better_start(
    problem: ExtractionProblem, start: Ints, model: Formulation, result: MipResult
) -> Ints:
    if result.values is None:
        return start
    found = model.chosen(result.values)
    return cheaper(problem, found, start) if is_acyclic(problem, found) else start


def _scaled(search: Search, scale: float) -> Progress:
    """Return a listener that turns the solver's bound into µs."""

    def listen(_: float, bound: float) -> None:
        search.raise_bound(bound / scale)

    return listen
