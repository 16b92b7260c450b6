"""Local search with exact neighbourhoods: most of a choice is fixed, the rest is solved with proof.

If the relaxation takes all of its time, its rounded choice is often not the best one, and branching over
the whole finds nothing in the time left. A neighbourhood is some classes. There every e-node may be chosen,
elsewhere only the one that the best choice has (or, of a class that it does not need, that of tree-greedy).
It is an e-graph itself, mostly a tenth of the whole once it is reduced, and proven optimal or improved in a
second. A choice found there is a choice of the whole; no bound follows from it. (Large neighbourhood
search: Shaw, *Using Constraint Programming and Local Search Methods to Solve Vehicle Routing Problems*, CP
1998.)

The relaxation guides it: a class is in doubt as far as the relaxation takes other e-nodes than the best
choice. Neighbourhoods are in turn the classes near each other, along the operands either way, around one
that is drawn by doubt; and the classes in most doubt, at any place. (Danna, Rothberg, Le Pape, *Exploring
relaxation induced neighborhoods to improve MIP solutions*, 2005.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import numpy as np

from relational_tensat.base.deadline import OutOfTimeError
from relational_tensat.extract.exact.reduce.reductions.needless import drop_underivable
from relational_tensat.extract.exact.reduce.smaller_problem import Mask, Reduced, keep, unreduced
from relational_tensat.extract.exact.solve.search import Search, SolverOptions
from relational_tensat.extract.greedy.bottom_up import settle_by_tree_cost
from relational_tensat.extract.index import children_by_node, nodes_by_class, parents_by_class
from relational_tensat.extract.problem import UNUSED, ExtractionProblem, Floats, Ints
from relational_tensat.extract.techniques import Techniques

LEAST_CLASSES = 150
"""Components of fewer classes are left to branching, which has such neighbourhoods of its own."""

_LEAST_SIZE, _SIZE = 100, 0.1
"""Classes of a neighbourhood at first: so many, and at least this fraction of all."""

_GROWTH, _SHRINKAGE = 1.1, 0.7
"""What its size is multiplied by after one that was proven and had nothing cheaper; one that was not."""

_MOST_FAILURES = 8
"""The search ends after so many in a row that had nothing cheaper."""

_SHARE_OF_ONE = 0.15
"""Of the time for all neighbourhoods, how much one may take."""

_LEAST_DOUBT = 0.02
"""Of a class for which the relaxation takes the e-node that the best choice has, or none."""

SearchPart = Callable[[Search, Reduced, SolverOptions], object]
"""Searches a part of an e-graph for a choice that is cheaper than the best."""


def has_neighbourhoods(problem: ExtractionProblem, options: SolverOptions) -> bool:
    """Return whether an e-graph is large enough to have some, and is no neighbourhood itself."""
    return not options.is_neighbourhood and problem.n_classes >= LEAST_CLASSES


def search_neighbourhoods(
    search: Search, search_part: SearchPart, options: SolverOptions, taken: Floats | None = None
) -> None:
    """Improve the choice of a search, neighbourhood by neighbourhood; its bound stays.

    Args:
        search: begins from its best choice.
        search_part: the exact search.
        options: limits; the seed draws where neighbourhoods begin.
        taken: per e-node, how much of it the relaxation takes; None where that is not known.
    """
    neighbourhoods = _Neighbourhoods(search, options.seed, taken)
    limit_s = _SHARE_OF_ONE * options.seconds_left
    size, failures = max(_LEAST_SIZE, _SIZE * search.problem.n_classes), 0
    while failures < _MOST_FAILURES and not search.closed and not options.exhausted:
        watch = options.watch.within(limit_s)
        limits = replace(
            options,
            watch=watch,
            techniques=Techniques(options.techniques.disabled),
            is_neighbourhood=True,
        )
        part = Search(search.problem, search.best)
        part.unit_us = search.unit_us
        with suppress(OutOfTimeError):
            search_part(part, neighbourhoods.draw(max(1, int(size))), limits)
        if search.offer(part.best):
            failures = 0
            continue
        failures += 1
        size *= _GROWTH if part.closed else _SHRINKAGE


class _Neighbourhoods:
    """Neighbourhoods of a search's best choice so far."""

    def __init__(self, search: Search, seed: int, taken: Floats | None) -> None:
        self._search, self._problem = search, search.problem
        self._taken, self._n_drawn = taken, 0
        self._random = np.random.default_rng(seed)
        self._by_tree_cost, _ = settle_by_tree_cost(search.problem, None)
        self._children = children_by_node(search.problem)
        self._members = nodes_by_class(search.problem)
        self._users = parents_by_class(search.problem)
        self._owner: list[int] = search.problem.node_class.tolist()

    def draw(self, size: int) -> Reduced:
        """Return the e-graph in which some classes are free: near each other, or in most doubt, in turn."""
        used_classes = np.flatnonzero(self._search.best != UNUSED)
        doubt = self._doubt()
        self._n_drawn += 1
        if self._taken is not None and self._n_drawn % 2 == 0:
            free = self._in_most_doubt(doubt, size)
        else:
            odds = doubt[used_classes]
            free = self._around(int(self._random.choice(used_classes, p=odds / odds.sum())), size)
        best = self._search.best
        fixed: Ints = np.where(best == UNUSED, self._by_tree_cost, best)
        allowed: Mask = free[self._problem.node_class]
        allowed[fixed[fixed != UNUSED]] = True
        return drop_underivable(keep(unreduced(self._problem), allowed))

    def _doubt(self) -> Floats:
        """Return, by class, how much the relaxation takes of other e-nodes than the best choice."""
        doubt: Floats = np.full(self._problem.n_classes, _LEAST_DOUBT)
        if self._taken is not None:
            best = self._search.best
            others = self._taken.copy()
            others[best[best != UNUSED]] = 0.0
            doubt += np.bincount(self._problem.node_class, others, self._problem.n_classes)
        return doubt

    def _in_most_doubt(self, doubt: Floats, size: int) -> Mask:
        """Return so many classes, drawn by doubt without repetition."""
        free = np.zeros(self._problem.n_classes, dtype=np.bool_)
        count = min(size, self._problem.n_classes)
        odds = doubt / doubt.sum()
        free[self._random.choice(self._problem.n_classes, count, replace=False, p=odds)] = True
        return free

    def _around(self, start: int, size: int) -> Mask:
        """Return which classes are nearest to one, so many, ties at random; not by way of the root."""
        is_near = np.zeros(self._problem.n_classes, dtype=np.bool_)
        is_near[start] = True
        count, queue = 1, deque([start])
        while queue and count < size:
            near = self._adjacent(queue.popleft())
            for place in self._random.permutation(len(near)).tolist():
                if count < size and not is_near[near[place]]:
                    is_near[near[place]] = True
                    count += 1
                    queue.append(near[place])
        return is_near

    def _adjacent(self, klass: int) -> list[int]:
        """Return the classes whose e-nodes need this one, and those that its own e-nodes need."""
        root = self._problem.root
        below = (child for node in self._members[klass] for child in self._children[node])
        above = (self._owner[node] for node in self._users[klass])
        return sorted({*below, *above} - {root}) if klass != root else []
