"""The searches of an e-graph's components, and the choice of the whole that they make up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from relational_tensat.extract.exact.decompose.components import Component, components
from relational_tensat.extract.exact.decompose.isomorphic import Group, grouped
from relational_tensat.extract.exact.reduce.reduced import Reduced
from relational_tensat.extract.exact.solve.search import Search
from relational_tensat.extract.exact.solve.solver_options import Progress, SolverOptions
from relational_tensat.extract.problem import Ints

SearchOne = Callable[[Search, int, SolverOptions], None]
"""Searches one component, given how many are isomorphic to it (itself included), within limits."""


class Assembly:
    """The components' searches; the search of the whole gets their choices and bounds.

    Args:
        whole: the search of the whole.
        reduced: its e-graph, or one that stands for it; its root has one e-node.
        start: a choice of the reduced e-graph.

    Attributes:
        searches: one per component; each begins with what the start has of it.
    """

    def __init__(self, whole: Search, reduced: Reduced, start: Ints) -> None:
        self._whole, self._reduced, self._choice = whole, reduced, start.copy()
        root_node = int(start[reduced.problem.root])
        self._constant_us = float(reduced.problem.cost_us[root_node])
        self._components: Sequence[Component] = components(reduced.problem)
        self.searches = [
            Search(component.problem, component.restrict(start)) for component in self._components
        ]
        self._known_cost_us = [search.cost_us for search in self.searches]
        self._cheaper: list[int] = []
        self._is_held = False
        for index, (component, search) in enumerate(
            zip(self._components, self.searches, strict=True)
        ):
            if not component.leaves_choice:
                search.raise_bound(search.cost_us)
            search.progress = self._listener(index)

    def groups(self, options: SolverOptions) -> list[Group]:
        """Return the components in groups of isomorphic ones, if that technique is used."""
        return grouped([search.problem for search in self.searches], options.techniques)

    @property
    def notes(self) -> list[str]:
        """What the searches have noted, each once."""
        return list(dict.fromkeys(note for search in self.searches for note in search.notes))

    def search_each(
        self, groups: Sequence[Group], search_one: SearchOne, options: SolverOptions
    ) -> None:
        """Search the first of every group, each for its share of the time that is left."""
        try:
            for index, group in enumerate(groups):
                limits = options.for_share(1 / (len(groups) - index))
                with self.first_of(group) as search:
                    search_one(search, len(group), limits)
        finally:  # what an interrupted search has proven counts as well
            self.sum_up()

    def sum_up(self) -> None:
        """Report the costs and bounds of the components to the whole."""
        for index in self._cheaper:
            self._components[index].write(self.searches[index].best, self._choice)
        if self._cheaper:
            self._whole.offer(self._reduced.lift(self._choice))
            self._cheaper.clear()
        bounds = [search.bound_us for search in self.searches]
        self._whole.raise_bound(math.fsum([self._constant_us, *bounds]))

    @contextmanager
    def first_of(self, group: Group) -> Iterator[Search]:
        """Give the search of the first of some isomorphic components, to be searched in the block.

        It begins with the best of all; its choice and bound hold for the others.
        """
        (index, _), *others = group
        first = self.searches[index]
        for other, isomorphism in others:
            if isomorphism is not None and self.searches[other].cost_us < first.cost_us:
                first.offer(isomorphism.onto_first(self.searches[other].best))
        try:
            yield first
        finally:
            with self._held():
                for other, isomorphism in others:
                    search = self.searches[other]
                    if isomorphism is not None and first.cost_us < search.cost_us:
                        search.offer(isomorphism.onto_second(first.best))
                    if isomorphism is not None:
                        search.raise_bound(first.bound_us)

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Report to the whole once, at the end, what the block finds: that costs what it is large."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            self.sum_up()

    def _listener(self, index: int) -> Progress:
        def listen(cost_us: float, _: float) -> None:
            if cost_us < self._known_cost_us[index]:
                self._known_cost_us[index] = cost_us
                self._cheaper.append(index)
            if not self._is_held:
                self.sum_up()

        return listen
