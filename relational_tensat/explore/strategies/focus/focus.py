"""Focus: grow a subgraph, keep the e-nodes of its cheapest graph, grow these again.

Cheap graphs are found in small subgraphs one after the other, where one large e-graph would be full of
costly ones. All subgraphs are parts of one universe: the e-nodes and unions of any of them stay.

At each width, first a subgraph is grown from the original graph, as saturation would at that node limit.
Then others are grown from the cheapest graph, until nothing gets cheaper. That is a local optimum: it
depends on what the node limit let in. So the search starts again: from the original graph, from that beside
the cheapest so far, or from the cheapest with more iterations of multi-pattern rules. It applies these in
another order and gives them another share of the room. After each time, it extracts from all subgraphs
together, and continues from there: together they have graphs that none of them has. It ends after so many
restarts in a row that found nothing cheaper. Then wider. So the result costs no more than saturation's at
any of the widths that were reached.

With a tree search (``focus-mcts``), that comes once the first width's restarts find nothing. Extraction
takes its e-nodes with all others. Then restarts begin again, from the graph of its cheapest subgraph
instead of the original. Until then all is as without it, so the result costs no more than focus's at that
width.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from itertools import cycle
from random import Random
from typing import TypeAlias

from relational_tensat.explore.exploration_options import ExplorationOptions
from relational_tensat.explore.outcome import SubgraphReport
from relational_tensat.explore.strategies.focus.subgraphs import (
    EQUAL_COSTS,
    TREE_KINDS,
    GrownSubgraphs,
    Growth,
)
from relational_tensat.explore.strategies.policy import PLAIN, Variation

#: The origins of restarts; the next once one found nothing cheaper.
_RESTARTS = ("original", "original", "beside", "chosen")

#: Parts of the room in a subgraph that multi-pattern rules may take, in turn.
_SHARES = (0.25, 0.5, 0.35, 0.75)

#: A plan yields the next growth and is sent its report; a growing one returns the last report.
_Plan: TypeAlias = Generator[Growth, SubgraphReport, None]
_Growing: TypeAlias = Generator[Growth, SubgraphReport, SubgraphReport]

#: Kinds of subgraphs that were not grown by focus.
_NOT_GROWN = ("saturation", *TREE_KINDS)


class Focus:
    """The plan of a search: the next growth, by the outcome of the subgraphs so far."""

    def __init__(
        self,
        subgraphs: GrownSubgraphs,
        options: ExplorationOptions,
        original_us: float,
        seed: int,
        first: SubgraphReport | None = None,
    ) -> None:
        """Begin.

        Args:
            first: the origin of the first subgraph, instead of the original graph.
        """
        self._subgraphs = subgraphs
        self._options = options
        self._original_us = original_us
        self._random = Random(seed)
        self._shares = cycle(_SHARES)
        self._rounds: int | None = None
        self._more_rounds: int | None = None
        self._best = self._first = first
        self._first_width = options.first_subgraph_nodes(len(subgraphs.original()))
        self._extracted_size = 0
        self._plan = self._planned()

    def next_after(self, answer: SubgraphReport | None) -> Growth | None:
        """Return what is grown next, where nothing else may be; None where nothing is left.

        Args:
            answer: the outcome of the last; None at first.
        """
        try:
            return next(self._plan) if answer is None else self._plan.send(answer)
        except StopIteration:
            return None

    def _planned(self) -> _Plan:
        """Yield one growth after the other; each is answered before the next one is asked for."""
        for width in self._widths():
            start = self._grow_first(width) if self._first is None else self._grow("chosen", width)
            yield from self._follow((yield from start))
            yield from self._restart(width)
            if self._options.search == "focus-mcts" and width == self._first_width:
                yield from self._search_tree(width)
            grown = (w for w in self._subgraphs.reports if w.kind not in _NOT_GROWN)
            if all(w.stop_reason != "nodes" for w in grown if w.node_limit == width):
                break  # wider subgraphs would be the same

    def _search_tree(self, width: int) -> _Plan:
        """Search by a tree, and begin again from the graph of its cheapest subgraph."""
        if self._subgraphs.is_closed:  # it would find nothing else
            return
        n_before = len(self._subgraphs.reports)
        yield Growth("tree", width, self._original_us)
        found = self._subgraphs.reports[n_before:]
        yield from self._extract_all(width)
        # Graphs found by the subgraphs from there are compared among themselves: a costly one may lead on.
        self._subgraphs.begin_again()
        self._best = origin = min(found, key=lambda subgraph: subgraph.best_us)
        self._rounds = self._more_rounds = None
        first = yield from self._grow_first(width, PLAIN, origin)
        yield from self._follow(first)
        if first.stop_reason == "closed":  # restarts would find nothing else
            yield from self._extract_all(width)
        else:
            yield from self._restart(width, origin)
        self._best = min(self._subgraphs.reports, key=lambda subgraph: subgraph.best_us)

    def _restart(self, width: int, origin: SubgraphReport | None = None) -> _Plan:
        """Start again, until so many restarts in a row found nothing cheaper.

        Args:
            origin: a subgraph whose cheapest graph stands in the place of the original graph.
        """
        kinds = cycle(_RESTARTS)
        kind, stale = next(kinds), 0
        while stale < self._options.restarts and not self._subgraphs.is_closed:
            before_us = self._best_us
            variation = Variation(self._random.getrandbits(30), next(self._shares), self._rounds)
            if kind == "original":
                growing = self._grow_first(width, variation, origin)
            elif kind == "chosen":
                growing = self._grow_more(width, variation)
            else:
                growing = self._grow(kind, width, variation)
            yield from self._follow((yield from growing), variation)
            yield from self._extract_all(width)
            if _is_less(self._best_us, before_us):
                stale = 0
            else:
                kind, stale = next(kinds), stale + 1

    def _follow(self, subgraph: SubgraphReport, variation: Variation = PLAIN) -> _Plan:
        """Grow subgraphs from a first one, each from what was chosen in the last, until one gains nothing.

        A closed subgraph has all that others could add. Nor is one grown from a graph that costs what
        the seed of another of this width did: from there on, restarts mostly find what was found before.
        """
        while _is_less(subgraph.best_us, subgraph.seed_us) and not self._subgraphs.is_closed:
            if self._subgraphs.has_grown_from(subgraph.best_us, subgraph.node_limit):
                break
            subgraph = yield from self._grow("chosen", subgraph.node_limit, variation, subgraph)

    def _extract_all(self, width: int) -> _Plan:
        """Extract from all subgraphs together, and go on from there, until that has nothing cheaper."""
        while (size := self._subgraphs.reports[-1].universe) != self._extracted_size:
            self._extracted_size = size
            best_us = min(report.best_us for report in self._subgraphs.reports)
            subgraph = yield Growth("universe", width, best_us)
            if not _is_less(subgraph.best_us, subgraph.seed_us):
                return
            self._note(subgraph)
            yield from self._follow(subgraph)

    def _grow(
        self,
        kind: str,
        width: int,
        variation: Variation = PLAIN,
        start: SubgraphReport | None = None,
    ) -> _Growing:
        """Grow a subgraph from a graph that was chosen, the cheapest by default, or the original graph."""
        start = None if kind == "original" else start or self._best
        seed_us = self._original_us if start is None else start.best_us
        subgraph = yield Growth(kind, width, seed_us, start, variation)
        self._note(subgraph)
        return subgraph

    def _grow_first(
        self, width: int, variation: Variation = PLAIN, origin: SubgraphReport | None = None
    ) -> _Growing:
        """Grow a subgraph from the original graph, or from that of an origin.

        Where it has room for more, multi-pattern rules take part in more iterations of the next.
        """
        kind = "original" if origin is None else "chosen"
        subgraph = yield from self._grow(kind, width, variation, origin)
        if subgraph.stop_reason == "saturated":
            self._rounds = 2 * (self._rounds or self._options.multi_iterations)
        return subgraph

    def _grow_more(self, width: int, variation: Variation) -> _Growing:
        """Grow a subgraph from the cheapest graph, with more iterations of multi-pattern rules."""
        self._more_rounds = 2 * (self._more_rounds or self._options.multi_iterations)
        variation = replace(variation, multi_iterations=self._more_rounds)
        return (yield from self._grow("chosen", width, variation))

    def _note(self, subgraph: SubgraphReport) -> None:
        if self._best is None or _is_less(subgraph.best_us, self._best_us):
            self._best = subgraph

    @property
    def _best_us(self) -> float:
        return self._original_us if self._best is None else self._best.best_us

    def _widths(self) -> Iterator[int]:
        """Yield node limits of subgraphs, each twice the last, up to the options'."""
        most, width = self._options.node_limit, self._first_width
        yield width
        while width < most:
            width = min(2 * width, most)
            yield width


def _is_less(cost_us: float, than_us: float) -> bool:
    """Whether a graph is cheaper than another, by more than rounding."""
    return cost_us < than_us * (1 - EQUAL_COSTS)
