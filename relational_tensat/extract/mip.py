"""One integer program, solved again with more cuts until its optimum has no circle."""

from __future__ import annotations

from collections import Counter

import numpy as np

from relational_tensat.errors import RelationalTensatError
from relational_tensat.extract.formulation import Formulation, formulate
from relational_tensat.extract.greedy_dag import DagDeriver
from relational_tensat.extract.loops import circular_sets, loop_cuts, two_cycle_rows
from relational_tensat.extract.problem import dag_cost_us
from relational_tensat.extract.search import Search
from relational_tensat.extract.solver import (
    MipResult,
    Progress,
    Rows,
    SolverOptions,
    solve_mip,
    stack_rows,
)

_TOLERANCE = 1e-5
"""How far, as a fraction, HiGHS's objective may be off by values like 0.999999."""

_OBJECTIVE = 1e3
"""The objective is scaled so that the first choice costs this: HiGHS's tolerances are absolute."""


def cut_and_solve(search: Search, cycles: str, options: SolverOptions) -> None:
    """Improve the choice and the bound of a search by integer programming.

    Args:
        search: begins from its best choice, and is told of what is found.
        cycles: ``auto``, ``real``, ``int`` or ``none``.
        options: limits, threads, seed.

    Raises:
        RelationalTensatError: HiGHS contradicts a solution that is there.
    """
    if search.closed or options.exhausted:
        return
    model = formulate(search.problem, cycles, _OBJECTIVE / search.cost_us)
    rows = model.rows
    if cycles == "auto":
        rows = stack_rows([rows, two_cycle_rows(search.problem)])
    statuses: Counter[str] = Counter()
    deriver = DagDeriver(search.problem)
    while not search.closed and not options.exhausted:
        result = solve_mip(
            model.columns,
            rows,
            options,
            start=model.point(search.best),
            progress=_listener(search, model.scale),
        )
        statuses[result.status] += 1
        if result.infeasible:
            raise RelationalTensatError("HiGHS calls a model infeasible that has a solution")
        cuts = _take(search, model, deriver, result)
        if cuts is None:
            break
        rows = stack_rows([rows, cuts])
    search.notes.extend(f"HiGHS: {status} ×{count}" for status, count in statuses.items())


def _take(
    search: Search, model: Formulation, deriver: DagDeriver, result: MipResult
) -> Rows | None:
    """Take what HiGHS found; return cuts against its circles, or None where this is the end."""
    bound_us = result.bound / model.scale
    if result.values is None:
        search.raise_bound(bound_us)
        return None
    choice = model.chosen(result.values)
    circles = circular_sets(search.problem, choice)
    if circles:
        # What costs nothing any more is what HiGHS has chosen: derive as much of that as stands.
        paid = np.clip(result.values[: search.problem.n_nodes], 0.0, 1.0)
        search.offer(deriver.derive(search.problem.cost_us * (1 - paid)))
        search.raise_bound(bound_us)
        return loop_cuts(search.problem, circles) if result.proven else None
    search.offer(choice)
    cost_us = dag_cost_us(search.problem, choice)
    met = result.proven and abs(cost_us - bound_us) <= _TOLERANCE * cost_us
    search.raise_bound(cost_us if met else bound_us)
    return None


def _listener(search: Search, scale: float) -> Progress:
    """Return a listener that turns the solver's bound into µs."""

    def listen(_: float, bound: float) -> None:
        search.raise_bound(bound / scale)

    return listen
