"""Taking an e-graph apart before it is reduced: deep nets are many small problems, most of them alike.

Reductions take time by the size of what they reduce, and go over it again and again. A net of a
thousand layers falls apart at what every choice contains, into a thousand pieces and more; those that
are equal up to names are reduced and searched once.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from relational_tensat.base.deadline import OutOfTimeError
from relational_tensat.extract.exact.components import CameTo, alike, search_reduced
from relational_tensat.extract.exact.decompose.assembly import Assembly
from relational_tensat.extract.exact.decompose.isomorphic import Group
from relational_tensat.extract.exact.decompose.parts import parts
from relational_tensat.extract.exact.reduce.pinning import pin_required
from relational_tensat.extract.exact.reduce.reduced import Reduced, unreduced
from relational_tensat.extract.exact.solve.search import Search
from relational_tensat.extract.exact.solve.solver import SolverOptions
from relational_tensat.extract.greedy.bottom_up import DagDeriver
from relational_tensat.extract.greedy.dag import greedy_choices
from relational_tensat.extract.techniques import Techniques, size_of

LEAST_NODES = 1_000
"""Smaller e-graphs are reduced as a whole: each piece takes a hundredth of a second, however small."""

MOST_CLASSES = 100_000
"""E-graphs of more classes are reduced first: what every class requires takes memory by their square."""

LARGEST_PIECE = 0.5
"""An e-graph has fallen apart if no piece has more than this fraction of the e-nodes."""


def search_apart(whole: Search, reduced: Reduced, options: SolverOptions) -> bool:
    """Search the pieces that an e-graph falls into; exact if the time suffices.

    Args:
        whole: begins from its best choice, and is told of what is found.
        reduced: its e-graph, perhaps reduced; every e-node must be derivable.
        options: limits, threads, seed.

    Returns:
        Whether it did fall apart; if not, nothing was searched.

    Raises:
        OutOfTimeError: the time was over before there were pieces.
    """
    check, techniques = options.check, options.techniques
    if not techniques.uses("pinning") or whole.problem.n_nodes < LEAST_NODES:
        return False
    if reduced.problem.n_classes > MOST_CLASSES:
        return False
    pinned = pin_required(reduced, check)
    pieces = parts(pinned.problem)
    largest = max((piece.problem.n_nodes for piece in pieces), default=0)
    if largest > LARGEST_PIECE * pinned.problem.n_nodes:
        return False
    kept = pinned.within(whole.best)
    start = DagDeriver(pinned.problem, check=check).derive(
        np.where(kept, 0.0, pinned.problem.cost_us)
    )
    whole.offer(pinned.lift(start))
    assembly = Assembly(whole, pinned, pieces, start)
    techniques.whole = size_of([whole.problem])
    groups = alike([piece.problem for piece in pieces], options)
    came_to = CameTo()
    try:
        _begin(assembly, groups, options)
        for index, group in enumerate(groups):
            limits = options.for_share(1 / (len(groups) - index))
            with assembly.first_of(group) as search:
                came_to = came_to.and_copies(_search_group(search, len(group), limits), len(group))
    finally:  # what an interrupted search has proven counts as well
        assembly.sum_up()
    whole.notes += [f"{whole.problem.n_nodes} e-nodes {came_to}", *assembly.notes]
    return True


def _begin(assembly: Assembly, groups: list[Group], options: SolverOptions) -> None:
    """Let every piece begin with the cheapest of its greedy choices."""
    with suppress(OutOfTimeError):
        for group in groups:
            options.check()
            with assembly.first_of(group) as search:
                if search.closed:
                    continue
                for choice in greedy_choices(search.problem, lambda: options.exhausted):
                    search.offer(choice)


def _search_group(search: Search, count: int, options: SolverOptions) -> CameTo:
    """Search one of so many pieces that are alike; what is counted counts for each of them."""
    if search.closed:
        return CameTo()
    own = Techniques(options.techniques.without)
    came_to = CameTo(search.problem.n_nodes, 1, 1)
    own.left = size_of([search.problem])
    with suppress(OutOfTimeError):
        reduced = unreduced(search.problem)
        came_to = search_reduced(search, reduced, replace(options, techniques=own))
    options.techniques.add_copies(own, count)
    return came_to
