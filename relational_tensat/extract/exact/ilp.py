"""Extraction by integer programming: the reduced form, or the papers' forms as they are.

An e-graph is decomposed before it is reduced: deep nets are many small problems, most of them isomorphic.
Reductions take time by the size of what they reduce, and go over it again and again. A net of a thousand
layers decomposes at what every choice contains into a thousand components and more; those that are
isomorphic are reduced and searched once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice

import numpy as np

from relational_tensat.base.deadline import OutOfTimeError
from relational_tensat.extract.exact.decomposition import Assembly
from relational_tensat.extract.exact.isomorphic import Group
from relational_tensat.extract.exact.reduce.rounds import PINNING, linear_round, pin_required
from relational_tensat.extract.exact.reduce.smaller_problem import Reduced, unreduced
from relational_tensat.extract.exact.reduced_search import search_reduced
from relational_tensat.extract.exact.solve.formulation import WITHIN
from relational_tensat.extract.exact.solve.mip import cut_and_solve, scaled_model
from relational_tensat.extract.exact.solve.search import Progress, Search, SolverOptions
from relational_tensat.extract.greedy.bottom_up import DagDeriver
from relational_tensat.extract.greedy.dag import LARGEST_REDUCED, LARGEST_UNLIMITED, greedy_choices
from relational_tensat.extract.problem import ExtractionProblem, Ints, without_negative_costs
from relational_tensat.extract.techniques import Techniques, size_of


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

    What decomposes into small components is solved before greedy methods have been through a large whole.
    Where the search began from a choice that is known, they go through components only, as long as that
    ends with a proof.
    """
    if search.problem.has_negative_costs:
        from relational_tensat.extract.exact.signed_search import search_signed  # few have them

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
        _search_within(search, choices, options, offers=not is_small)
    finally:
        if is_small and not (search.closed or options.watch.wants_stop):
            _offer(search, choices)


def _search_within(
    search: Search, choices: Iterator[Ints], options: SolverOptions, *, offers: bool
) -> None:
    """Search the components of an e-graph, or the whole; ``offers``: what else there is, before that."""
    reduced = linear_round(unreduced(search.problem), options.check, options.techniques)
    is_apart = search_decomposed(search, reduced, options)
    if offers and not search.closed:
        _offer(search, choices)
    if not is_apart and not _is_over(search, options):
        search_reduced(search, reduced, options)


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


def search_decomposed(whole: Search, reduced: Reduced, options: SolverOptions) -> bool:
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
    """Search one of so many isomorphic components; what is counted counts for each of them."""
    if search.closed:
        return
    own = Techniques(options.techniques.disabled)
    own.size_after, own.components, own.distinct = size_of([search.problem]), 1, 1
    with suppress(OutOfTimeError):
        reduced = unreduced(search.problem)
        search_reduced(search, reduced, replace(options, techniques=own))
    options.techniques.add_copies(own, count)
