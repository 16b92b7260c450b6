"""Reduce, decompose, relax, leave out what no cheaper choice contains, and again; then solve the rest."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from relational_tensat.base.deadline import Budget, BudgetSpentError, OutOfTimeError
from relational_tensat.extract.exact.decomposition import Assembly
from relational_tensat.extract.exact.reduce.reductions.needless import drop_underivable
from relational_tensat.extract.exact.reduce.rounds import reduce_and_pin, with_single_root
from relational_tensat.extract.exact.reduce.smaller_problem import Mask, Reduced, keep, unreduced
from relational_tensat.extract.exact.relaxation import Relaxation, relax, without
from relational_tensat.extract.exact.solve.constraints import TWO_CYCLES, stack_rows, two_cycle_rows
from relational_tensat.extract.exact.solve.formulation import (
    WITHIN,
    components_to_order,
    with_order,
)
from relational_tensat.extract.exact.solve.mip import cut_and_solve, scaled_model
from relational_tensat.extract.exact.solve.search import UNITS, Search, SolverOptions, cost_unit_us
from relational_tensat.extract.greedy.bottom_up import DagDeriver
from relational_tensat.extract.greedy.cover import COVERS, covers
from relational_tensat.extract.greedy.dag import greedy_choices
from relational_tensat.extract.problem import Ints, dag_cost_us
from relational_tensat.extract.techniques import Technique, TechniqueGain, declare

_WORTH_REDUCING = 0.1
"""An e-graph is reduced again when at least this fraction of its e-nodes is excluded."""

_SHARE_OF_REDUCTIONS = 0.5
"""How much of the time reductions may take: bounds and solutions must have their turn."""

_SHARE_OF_RELAXATION = 0.6
"""Of the time for a component, how much its relaxation may take; branching has the rest."""

_SHARE_OF_NEIGHBOURHOODS = 0.7
"""Where the relaxation took all of its time and rules out little: of the rest, what neighbourhoods take."""

REDUCED_COSTS = declare(
    Technique(
        "reduced-costs",
        "drop e-nodes that the relaxation's duals rule out",
        earns_on=TechniqueGain("rings 300", "simplex_iterations"),
    )
)


def prepared(reduced: Reduced, options: SolverOptions) -> Reduced:
    """Reduce and pin as long as it is worthwhile; the root of the result has one e-node.

    Raises:
        OutOfTimeError: the time was over before that.
    """
    budget = Budget(options.check, _SHARE_OF_REDUCTIONS * options.seconds_left)
    with suppress(BudgetSpentError):
        for smaller in reduce_and_pin(reduced, budget, options.techniques):
            reduced = smaller
    return with_single_root(reduced)


def search_reduced(whole: Search, reduced: Reduced, options: SolverOptions) -> None:
    """Search a part of an e-graph that has an optimum, or nothing cheaper than the best.

    Raises:
        OutOfTimeError: the time was over before there were components.
    """
    reduced = prepared(reduced, options)
    start = _start(whole, reduced, options)
    whole.offer(reduced.lift(start))
    assembly = Assembly(whole, reduced, start)
    problems = [search.problem for search in assembly.searches]
    groups = assembly.groups(options)
    options.techniques.measure(whole.problem, problems, len(groups))
    _choose_greedily([assembly.searches[group[0][0]] for group in groups], options)
    assembly.search_each(groups, _search_component, options)
    whole.notes += assembly.notes


def _choose_greedily(searches: list[Search], options: SolverOptions) -> None:
    """Offer each component greedy choices: where less is left to choose, they are better ones."""
    uses = options.techniques.uses
    with suppress(OutOfTimeError):
        for search in searches:
            if search.closed:
                continue
            for choice in greedy_choices(search.problem, lambda: options.exhausted):
                search.offer(choice)
            if uses(COVERS) and uses("underivable"):
                for choice in covers(search.problem, options.seed, options.check):
                    search.offer(choice)


def _search_component(search: Search, count: int, options: SolverOptions) -> None:
    """Relax a component; where that leaves little of it, begin again with that, else solve it."""
    if search.closed or options.exhausted:
        return
    with suppress(OutOfTimeError):
        _relax_and_solve(search, options)


def _relax_and_solve(search: Search, options: SolverOptions) -> None:
    if options.techniques.uses(UNITS):
        search.unit_us = cost_unit_us(search.problem)
    model = scaled_model(search, "auto")
    rows = model.rows
    if options.techniques.uses(TWO_CYCLES):
        rows = stack_rows([rows, two_cycle_rows(search.problem)])
    limits = options.for_share(_SHARE_OF_RELAXATION)
    relaxation = relax(search, model, rows, limits)
    excluded = _excluded(search, relaxation, options)
    is_stuck = limits.exhausted and excluded.mean() < _WORTH_REDUCING
    if is_stuck:
        from relational_tensat.extract.exact import neighbourhoods as near  # few e-graphs need them

        if near.has_neighbourhoods(search.problem, options):
            share = options.for_share(_SHARE_OF_NEIGHBOURHOODS)
            taken = None if relaxation is None else relaxation.taken
            near.search_neighbourhoods(search, search_reduced, share, taken)
            excluded = _excluded(search, relaxation, options)
    if relaxation is None or search.closed:
        return
    if excluded.mean() >= _WORTH_REDUCING:
        _search_rest(search, ~excluded, options)
    else:
        components = components_to_order(search.problem, WITHIN[options.cycles])
        model = with_order(replace(model, rows=relaxation.rows), components)
        cut_and_solve(search, model, without(model.columns, excluded), model.rows, options)


def _excluded(search: Search, relaxation: Relaxation | None, options: SolverOptions) -> Mask:
    """Return the e-nodes that the relaxation's duals rule out."""
    if relaxation is None or not options.techniques.uses(REDUCED_COSTS):
        return np.zeros(search.problem.n_nodes, dtype=np.bool_)
    return relaxation.excluded(search.cheaper_below_us)


def _search_rest(search: Search, nodes: Mask, options: SolverOptions) -> None:
    """Search among some e-nodes, beyond which there is nothing cheaper than the best choice."""
    options.techniques.dropped[REDUCED_COSTS] += int((~nodes).sum())
    reduced = drop_underivable(keep(unreduced(search.problem), nodes))
    if not np.any(reduced.problem.node_class == reduced.problem.root):
        search.raise_bound(search.cost_us)
        return
    search_reduced(search, reduced, options)


def _start(whole: Search, reduced: Reduced, options: SolverOptions) -> Ints:
    """Return a choice of the reduced e-graph: greedy, or what is left in it of the best one."""
    problem = reduced.problem
    deriver = DagDeriver(problem, check=options.check)
    is_kept = reduced.within(whole.best)
    choices = [
        deriver.derive(problem.cost_us),
        deriver.derive(np.where(is_kept, 0.0, problem.cost_us)),
    ]
    return min(choices, key=lambda choice: dag_cost_us(problem, choice))
