"""One integer program, solved again with more cuts until its optimum has no cycle; negative costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.extract.exact.solve.constraints import Columns, Rows, cycle_cuts, stack_rows
from relational_tensat.extract.exact.solve.formulation import (
    Formulation,
    components_to_order,
    formulate,
    rows_from_triples,
    with_order,
)
from relational_tensat.extract.exact.solve.search import Search, SolverOptions, is_counted
from relational_tensat.extract.exact.solve.solver import MipResult, solve_mip
from relational_tensat.extract.greedy.bottom_up import DagDeriver
from relational_tensat.extract.index import cyclic_sets, edge_owner
from relational_tensat.extract.problem import ExtractionProblem, Ints, dag_cost_us, is_acyclic

_TOLERANCE = 1e-5
"""How far, as a fraction, HiGHS's objective may be off by values like 0.999999."""

_OBJECTIVE = 1e3
"""Without a unit, the objective is scaled so that the first choice, or all amounts, cost this: HiGHS's
tolerances are absolute. In units it is whole numbers, which HiGHS sees for itself."""


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
            columns,
            rows,
            options,
            start=start,
            progress=lambda _, bound: search.raise_bound(bound / model.scale),
        )
        note = f"HiGHS: {result.status}"
        if note not in search.notes:
            search.notes.append(note)
        if result.infeasible:
            if columns is model.columns:
                raise RelationalTensatError("HiGHS calls a model infeasible that has a solution")
            # right only where e-nodes of no cheaper choice were left out
            search.raise_bound(search.cost_us)
            break
        cuts = _take(search, model, deriver, result)
        if cuts is None:
            break
        rows = stack_rows([rows, cuts])


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


def search_signed(search: Search, choices: Iterator[Ints], options: SolverOptions) -> None:
    """Improve the choice and the bound of a search whose e-graph has negative costs (files of other tools).

    The cost of a choice is, as always, the sum over the e-nodes that the root reaches. A class of negative
    cost is worth taking, but counts only where a chosen e-node needs it. Reductions, bounds and
    decomposition of other e-graphs assume that nothing is gained by taking more. So none of them is used
    here. This is one integer program, with a row per class that says who must have taken it. With cycles
    kept out, a class that is taken has a parent that is, and so on up to the root.

    Args:
        search: begins from its best choice, and is updated.
        choices: of greedy methods, to begin from if one is better.
        options: limits, threads, seed.

    Raises:
        OutOfTimeError: the time is over.
    """
    for choice in choices:
        search.offer(choice)
    search.notes.append("negative costs count where a chosen e-node needs them")
    options.check()
    model = _signed_model(search.problem)
    tolerance_us = _OBJECTIVE * 1e-8 / model.scale  # of values like 0.9999999
    result = solve_mip(
        model.columns,
        model.rows,
        options,
        start=model.point(search.best),
        progress=lambda _, bound: search.raise_bound(bound / model.scale),
    )
    search.notes.append(f"HiGHS: {result.status}")
    bound_us = result.bound / model.scale
    if result.values is not None:
        choice = model.chosen(result.values)
        if is_acyclic(search.problem, choice):
            search.offer(choice)
            cost_us = dag_cost_us(search.problem, choice)
            if result.proven and abs(cost_us - bound_us) <= tolerance_us:
                bound_us = cost_us
    search.raise_bound(bound_us)


def _signed_model(problem: ExtractionProblem) -> Formulation:
    amounts_us = float(np.abs(problem.cost_us).sum())
    plain = formulate(problem, "none", _OBJECTIVE / amounts_us)
    model = with_order(plain, components_to_order(problem, lambda size: True))
    owner = edge_owner(problem.child_ptr)
    loops = owner[problem.node_class[owner] == problem.child_idx]
    model.columns.upper[loops] = 0.0
    return replace(model, rows=stack_rows([model.rows, _parent_rows(problem, owner)]))


def _parent_rows(problem: ExtractionProblem, owner: Ints) -> Rows:
    """Per class but the root: its y is at most the sum of x over the e-nodes that need it."""
    below_root = problem.child_idx != problem.root
    others = np.delete(np.arange(problem.n_classes), problem.root)
    rows = np.concatenate([problem.child_idx[below_root], others])
    columns = np.concatenate([owner[below_root], problem.n_nodes + others])
    values = np.concatenate([-np.ones(int(below_root.sum())), np.ones(len(others))])
    place = np.full(problem.n_classes, -1)
    place[others] = np.arange(len(others))
    return rows_from_triples(
        place[rows], columns, values, np.full(len(others), -np.inf), np.zeros(len(others))
    )
