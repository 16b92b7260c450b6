"""Extraction by integer programming: the reduced form, or the papers' forms as they are.

An e-graph is decomposed before it is reduced: deep nets are many small problems, most of them isomorphic.
Reductions take time by the size of what they reduce, and go over it again and again. A net of a thousand
layers decomposes at what every choice contains into a thousand components and more; those that are
isomorphic are reduced and searched once.

The search of a component reduces, decomposes, relaxes, leaves out what no cheaper choice contains, and does
so again; then it solves the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice

import numpy as np

from relational_tensat.base.deadline import Budget, BudgetSpentError, OutOfTimeError
from relational_tensat.extract.exact.decomposition import Assembly
from relational_tensat.extract.exact.isomorphic import Group
from relational_tensat.extract.exact.reduce.reductions.needless import drop_underivable
from relational_tensat.extract.exact.reduce.rounds import (
    PINNING,
    linear_round,
    pin_required,
    reduce_and_pin,
    with_single_root,
)
from relational_tensat.extract.exact.reduce.smaller_problem import Mask, Reduced, keep, unreduced
from relational_tensat.extract.exact.relaxation import Relaxation, relax, without
from relational_tensat.extract.exact.solve.constraints import TWO_CYCLES, stack_rows, two_cycle_rows
from relational_tensat.extract.exact.solve.formulation import (
    WITHIN,
    components_to_order,
    with_order,
)
from relational_tensat.extract.exact.solve.mip import cut_and_solve, scaled_model
from relational_tensat.extract.exact.solve.search import (
    UNITS,
    Progress,
    Search,
    SolverOptions,
    cost_unit_us,
)
from relational_tensat.extract.greedy.bottom_up import DagDeriver
from relational_tensat.extract.greedy.cover import COVERS, covers
from relational_tensat.extract.greedy.dag import LARGEST_REDUCED, LARGEST_UNLIMITED, greedy_choices
from relational_tensat.extract.problem import (
    ExtractionProblem,
    Ints,
    dag_cost_us,
    without_negative_costs,
)
from relational_tensat.extract.techniques import (
    Technique,
    TechniqueGain,
    Techniques,
    declare,
    size_of,
)


def search_ilp(
    problem: ExtractionProblem,
    cycles: str,
    options: SolverOptions,
    progress: Progress | None,
    start: Ints | None = None,
) -> Search:
    """Search the cheapest acyclic choice with HiGHS; Ctrl-C ends it with the best so far.

    The first choice is there at once. At any end of the search, the result is not worse than the original
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
    plain_problem = without_negative_costs(problem) if problem.has_negative_costs else problem
    choices = greedy_choices(plain_problem, lambda: options.exhausted)
    plain = 1 + problem.has_original  # tree-greedy is the last of these
    has_start = start is not None
    if start is None:
        start, plain = next(choices), plain - 1
    search = Search(problem, start, progress)
    for choice in islice(choices, plain):
        search.offer(choice)
    search.baseline_us = search.cost_us
    try:
        with options.watch.raising():
            _search(search, choices, cycles, options, has_start=has_start)
    except KeyboardInterrupt:
        options.watch.survive()
    except OutOfTimeError as limit:
        search.notes.append(str(limit))
    if options.watch.happened:
        search.notes.append("interrupted")
    return search


def _search(
    search: Search,
    choices: Iterator[Ints],
    cycles: str,
    options: SolverOptions,
    *,
    has_start: bool,
) -> None:
    """Try what else a plain method finds, and improve the best by integer programming.

    A problem that decomposes into small components is solved before greedy methods have been through a
    large whole. Where the search began from a choice that is known, they go through components only, as
    long as that ends with a proof.
    """
    if search.problem.has_negative_costs:
        from relational_tensat.extract.exact.solve.mip import search_signed  # few have them

        search_signed(search, choices, options)
        return
    within = cycles in WITHIN
    is_small = search.problem.n_nodes <= LARGEST_UNLIMITED
    is_later = has_start if is_small else search.problem.n_nodes <= LARGEST_REDUCED
    if not (within and is_later):
        _offer(search, choices)
        if _is_over(search, options):
            return
    if not within:
        model = scaled_model(search, cycles)
        cut_and_solve(search, model, model.columns, model.rows, options)
        return
    options = replace(options, cycles=cycles)
    try:
        reduced = linear_round(unreduced(search.problem), options.check, options.techniques)
        is_apart = _search_decomposed(search, reduced, options)
        if not is_small and not search.closed:
            _offer(search, choices)
        if not is_apart and not _is_over(search, options):
            search_reduced(search, reduced, options)
    finally:
        if is_small and not (search.closed or options.watch.wants_stop):
            _offer(search, choices)


def _offer(search: Search, choices: Iterator[Ints]) -> None:
    for choice in choices:
        search.offer(choice)


def _is_over(search: Search, options: SolverOptions) -> bool:
    if not search.closed and options.exhausted:
        search.notes.append("no time was left beyond the greedy methods: nothing is proven")
    return search.closed or options.exhausted


LEAST_NODES = 1_000
"""Smaller e-graphs are reduced as a whole: a component takes a hundredth of a second, however small."""

MOST_CLASSES = 100_000
"""E-graphs of more classes are reduced first: required classes take memory by their square."""

LARGEST_COMPONENT = 0.5
"""An e-graph is worth decomposing if no component has more than this fraction of the e-nodes."""


def _search_decomposed(whole: Search, reduced: Reduced, options: SolverOptions) -> bool:
    """Search the components of an e-graph; exact if the time suffices.

    Args:
        whole: begins from its best choice, and is updated with every better choice and bound.
        reduced: its e-graph, perhaps reduced; every e-node must be derivable.
        options: limits, threads, seed.

    Returns:
        Whether it was worth decomposing; if not, nothing was searched.

    Raises:
        OutOfTimeError: the time was over before there were components.
    """
    check, techniques = options.check, options.techniques
    if not techniques.uses(PINNING) or whole.problem.n_nodes < LEAST_NODES:
        return False
    if reduced.problem.n_classes > MOST_CLASSES:
        return False
    pinned = pin_required(reduced, check)
    is_kept = pinned.within(whole.best)
    start = DagDeriver(pinned.problem, check=check).derive(
        np.where(is_kept, 0.0, pinned.problem.cost_us)
    )
    assembly = Assembly(whole, pinned, start)
    largest = max((search.problem.n_nodes for search in assembly.searches), default=0)
    if largest > LARGEST_COMPONENT * pinned.problem.n_nodes:
        return False
    whole.offer(pinned.lift(start))
    techniques.size_before = size_of([whole.problem])
    groups = assembly.groups(options)
    _begin(assembly, groups, options)
    assembly.search_each(groups, _search_copies, options)
    whole.notes += assembly.notes
    return True


def _begin(assembly: Assembly, groups: list[Group], options: SolverOptions) -> None:
    """Let every component begin with the cheapest of its greedy choices."""
    with suppress(OutOfTimeError):
        for group in groups:
            options.check()
            with assembly.first_of(group) as search:
                if search.closed:
                    continue
                for choice in greedy_choices(search.problem, lambda: options.exhausted):
                    search.offer(choice)


def _search_copies(search: Search, count: int, options: SolverOptions) -> None:
    """Search one of so many isomorphic components; its counts count for each of them."""
    if search.closed:
        return
    own = Techniques(options.techniques.disabled)
    own.size_after, own.components, own.distinct = size_of([search.problem]), 1, 1
    with suppress(OutOfTimeError):
        reduced = unreduced(search.problem)
        search_reduced(search, reduced, replace(options, techniques=own))
    options.techniques.add_copies(own, count)


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
    problem = reduced.problem
    deriver = DagDeriver(problem, check=options.check)
    is_kept = reduced.within(whole.best)
    choices = [
        deriver.derive(problem.cost_us),
        deriver.derive(np.where(is_kept, 0.0, problem.cost_us)),
    ]
    start = min(choices, key=lambda choice: dag_cost_us(problem, choice))
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
