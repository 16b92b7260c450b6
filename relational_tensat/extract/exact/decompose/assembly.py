"""The searches of an e-graph's pieces, and the choice of the whole that they make up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from relational_tensat.extract.exact.decompose.isomorphic import Group
from relational_tensat.extract.exact.decompose.parts import Part
from relational_tensat.extract.exact.reduce.reduced import Reduced
from relational_tensat.extract.exact.solve.search import Search
from relational_tensat.extract.exact.solve.solver import Progress
from relational_tensat.extract.problem import Ints


class Assembly:
    """The pieces' searches; the search of the whole is told of what they find.

    Args:
        whole: the search of the whole.
        reduced: its e-graph, or one that stands for it.
        pieces: what that falls into without its root.
        start: a choice of the reduced e-graph.

    Attributes:
        searches: one per piece; each begins with what the start has of it.
    """

    def __init__(
        self, whole: Search, reduced: Reduced, pieces: Sequence[Part], start: Ints
    ) -> None:
        self._whole, self._reduced, self._choice = whole, reduced, start.copy()
        root_node = int(start[reduced.problem.root])
        self._constant_us = float(reduced.problem.cost_us[root_node])
        self._pieces = pieces
        self.searches = [Search(piece.problem, piece.restrict(start)) for piece in self._pieces]
        self._known_cost_us = [search.cost_us for search in self.searches]
        self._cheaper: list[int] = []
        self._is_held = False
        for index, (piece, search) in enumerate(zip(pieces, self.searches, strict=True)):
            if not piece.leaves_choice:
                search.raise_bound(search.cost_us)
            search.progress = self._listener(index)

    @property
    def notes(self) -> list[str]:
        """What the searches have noted, each once."""
        return list(dict.fromkeys(note for search in self.searches for note in search.notes))

    def sum_up(self) -> None:
        """Tell the whole of the costs and bounds of its pieces."""
        for index in self._cheaper:
            self._pieces[index].write(self.searches[index].best, self._choice)
        if self._cheaper:
            self._whole.offer(self._reduced.lift(self._choice))
            self._cheaper.clear()
        bounds = [search.bound_us for search in self.searches]
        self._whole.raise_bound(math.fsum([self._constant_us, *bounds]))

    @contextmanager
    def first_of(self, group: Group) -> Iterator[Search]:
        """Give the search of the first of some pieces that are alike, to be searched in the block.

        It begins with the best of all; what it comes to holds for the others.
        """
        (number, _), *others = group
        first = self.searches[number]
        for other, twin in others:
            if twin is not None and self.searches[other].cost_us < first.cost_us:
                first.offer(twin.onto_first(self.searches[other].best))
        try:
            yield first
        finally:
            with self._held():
                for other, twin in others:
                    search = self.searches[other]
                    if twin is not None and first.cost_us < search.cost_us:
                        search.offer(twin.onto_second(first.best))
                    if twin is not None:
                        search.raise_bound(first.bound_us)

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Tell the whole once, at the end, of what the block finds: that costs what it is large."""
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
