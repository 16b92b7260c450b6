"""Extraction where some e-nodes cost less than nothing, as in files of other tools.

The cost of a choice is, as always, the sum over the e-nodes that the root reaches. A class of negative
cost is worth taking, but counts only where a chosen e-node needs it. Reductions, bounds and decomposition
of other e-graphs assume that nothing is gained by taking more. So none of them is used here. This is one
integer program, with a row per class that says who must have taken it. With cycles kept out, a class that
is taken has a parent that is, and so on up to the root.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from relational_tensat.extract.exact.solve.constraints import Rows, stack_rows
from relational_tensat.extract.exact.solve.formulation import (
    Formulation,
    components_to_order,
    formulate,
    rows_from_triples,
    with_order,
)
from relational_tensat.extract.exact.solve.search import Search, SolverOptions
from relational_tensat.extract.exact.solve.solver import solve_mip
from relational_tensat.extract.index import edge_owner
from relational_tensat.extract.problem import ExtractionProblem, Ints, dag_cost_us, is_acyclic

_OBJECTIVE = 1e3
"""What the objective is scaled to, as a sum of all amounts: HiGHS's tolerances are absolute."""


def search_signed(search: Search, choices: Iterator[Ints], options: SolverOptions) -> None:
    """Improve the choice and the bound of a search whose e-graph has negative costs.

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
    model = _model(search.problem)
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
            if result.proven and abs(cost_us - bound_us) <= _TOLERANCE / model.scale:
                bound_us = cost_us
    search.raise_bound(bound_us)


_TOLERANCE = _OBJECTIVE * 1e-8
"""How far HiGHS's objective may be off by values like 0.9999999."""


def _model(problem: ExtractionProblem) -> Formulation:
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
