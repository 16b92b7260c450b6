"""Decomposing an e-graph before it is reduced: deep nets are many small problems, most of them isomorphic.

Reductions take time by the size of what they reduce, and go over it again and again. A net of a
thousand layers decomposes at what every choice contains into a thousand components and more; those
that are isomorphic are reduced and searched once.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from relational_tensat.base.deadline import OutOfTimeError
from relational_tensat.extract.exact.decomposition import Assembly
from relational_tensat.extract.exact.isomorphic import Group
from relational_tensat.extract.exact.reduce.rounds import PINNING, pin_required
from relational_tensat.extract.exact.reduce.smaller_problem import Reduced, unreduced
from relational_tensat.extract.exact.reduced_search import search_reduced
from relational_tensat.extract.exact.solve.search import Search, SolverOptions
from relational_tensat.extract.greedy.bottom_up import DagDeriver
from relational_tensat.extract.greedy.dag import greedy_choices
from relational_tensat.extract.techniques import Techniques, size_of

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
