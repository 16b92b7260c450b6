"""One integer program, solved again with more cuts until its optimum has no cycle."""

from __future__ import annotations

import numpy as np

from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.extract.exact.solve.constraints import Columns, Rows, cycle_cuts, stack_rows
from relational_tensat.extract.exact.solve.formulation import Formulation, formulate
from relational_tensat.extract.exact.solve.search import Progress, Search, SolverOptions, is_counted
from relational_tensat.extract.exact.solve.solver import MipResult, solve_mip
from relational_tensat.extract.greedy.bottom_up import DagDeriver
from relational_tensat.extract.index import cyclic_sets
from relational_tensat.extract.problem import dag_cost_us

_TOLERANCE = 1e-5
"""How far, as a fraction, HiGHS's objective may be off by values like 0.999999."""

_OBJECTIVE = 1e3
"""Without a unit, the objective is scaled so that the first choice costs this: HiGHS's tolerances are
absolute. In units it is whole numbers, which HiGHS sees for itself."""


def scaled_model(search: Search, cycles: str) -> Formulation:
    """Return the integer program of a search's e-graph; its objective is in units where there are any."""
    in_units = is_counted(search.unit_us, search.cost_us)
    scale = 1.0 / search.unit_us if in_units else _OBJECTIVE / search.cost_us
    return formulate(search.problem, cycles, scale)


def cut_and_solve(
    search: Search, model: Formulation, columns: Columns, rows: Rows, options: SolverOptions
) -> None:
    """Improve the choice and the bound of a search by integer programming.

    Args:
        search: begins from its best choice, and is updated with every better choice and bound.
        model: the integer program of the search's e-graph.
        columns: those of the model, perhaps with e-nodes fixed at 0 that are in no cheaper choice.
        rows: those of the model, and cuts.
        options: limits, threads, seed.

    Raises:
        RelationalTensatError: HiGHS contradicts a solution that is there.
    """
    deriver = DagDeriver(search.problem, check=options.check)
    start_point = model.point(search.best)
    start = None if np.any(start_point > columns.upper) else start_point
    while not search.closed and not options.exhausted:
        result = solve_mip(
            columns, rows, options, start=start, progress=_listener(search, model.scale)
        )
        note = f"HiGHS: {result.status}"
        if note not in search.notes:
            search.notes.append(note)
        if result.infeasible:
            _nothing_cheaper(search, columns, model)
            break
        cuts = _take(search, model, deriver, result)
        if cuts is None:
            break
        rows = stack_rows([rows, cuts])


def _nothing_cheaper(search: Search, columns: Columns, model: Formulation) -> None:
    """HiGHS finds no choice: right only where e-nodes of no cheaper choice were left out."""
    if columns is model.columns:
        raise RelationalTensatError("HiGHS calls a model infeasible that has a solution")
    search.raise_bound(search.cost_us)


def _take(
    search: Search, model: Formulation, deriver: DagDeriver, result: MipResult
) -> Rows | None:
    """Take what HiGHS found; return cuts against its cycles, or None where this is the end."""
    bound_us = result.bound / model.scale
    if result.values is None:
        search.raise_bound(bound_us)
        return None
    choice = model.chosen(result.values)
    cycles = cyclic_sets(search.problem, choice)
    if cycles:
        # E-nodes that HiGHS has chosen cost nothing any more: derive as many of them as possible.
        amounts = np.clip(result.values[: search.problem.n_nodes], 0.0, 1.0)
        search.raise_bound(bound_us)
        search.offer(deriver.derive(search.problem.cost_us * (1 - amounts)))
        return cycle_cuts(search.problem, cycles) if result.proven else None
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
