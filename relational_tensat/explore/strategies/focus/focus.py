"""Focus: grow a subgraph, keep the e-nodes of its cheapest graph, grow these again.

What is cheap is found in small subgraphs one after the other, where one large e-graph would be full of what
is not. All subgraphs are parts of one universe: what any of them built and united stays.

At each width, first a subgraph is grown from the original graph, as saturation would at that node limit,
then others from what was chosen, until nothing gets cheaper. That is a local optimum, which depends on what
the node limit let in. So the search starts again, from the original graph, from that beside the cheapest so
far, or from the cheapest with more iterations of multi-pattern rules, with applications of these in another
order and another share of the room. After each time, it extracts from all subgraphs together, which have
graphs that none of them has, and continues from there; until so many restarts in a row found nothing
cheaper. Then wider. So the result costs no more than saturation's at any of the widths that were reached.

With a tree search (``focus-mcts``), that comes once the first width's restarts find nothing: what it builds
is extracted from with all else, and restarts begin again, from the graph of its cheapest subgraph instead
of the original. Until then all is as without it, so the result costs no more than focus's at that width.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from itertools import cycle
from random import Random
from typing import TypeAlias

from relational_tensat.base.watch import Guard
from relational_tensat.egraph.database import Interrupted, OutOfMemory
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore.exploration_options import ExplorationOptions
from relational_tensat.explore.members import begin_subgraphs, end_search, show_universe
from relational_tensat.explore.outcome import DecisionReport, Exploration, SubgraphReport
from relational_tensat.explore.strategies.focus.subgraphs import (
    EQUAL_COSTS,
    TREE_KINDS,
    GrownSubgraphs,
    Growth,
    SearchOver,
    TreePart,
)
from relational_tensat.explore.strategies.policy import PLAIN, Variation
from relational_tensat.explore.strategies.saturation import Saturation
from relational_tensat.explore.strategies.strategy import SearchSettings
from relational_tensat.rules.model import Rule

#: What restarts are grown from; the next once one found nothing cheaper.
_RESTARTS = ("original", "original", "beside", "chosen")

#: Parts of the room in a subgraph that multi-pattern rules may take, in turn.
_SHARES = (0.25, 0.5, 0.35, 0.75)

#: What is to be grown or extracted next, and what came of it; in the end, what it was grown for.
_Request: TypeAlias = Callable[[], SubgraphReport | None]
_Plan: TypeAlias = Generator[_Request, SubgraphReport | None, None]
_Growing: TypeAlias = Generator[_Request, SubgraphReport | None, SubgraphReport]

#: Kinds of subgraphs that were not grown by focus.
_NOT_GROWN = ("saturation", *TREE_KINDS)


def explore_focus(
    egraph: EGraph,
    rules: Sequence[Rule],
    search: SearchSettings,
) -> Exploration:
    """Grow subgraphs of an e-graph, until none has a cheaper graph or a limit is reached.

    Where the e-graph was explored before, the first subgraph is all that is there, and its cheapest graph
    is what others are grown from.

    Args:
        search: its ``iterations`` and ``node_limit`` are for each subgraph; the first are no larger than
            ``first_subgraph_nodes``, and ``universe_limit`` is for all of them together, beside the e-nodes
            that were there. With ``focus-mcts``, a tree search comes where restarts find nothing more.

    Raises:
        UnsoundRuleError: as ``explore``.
    """
    with egraph.transaction():
        is_explored = end_search(egraph)
        begin_subgraphs(egraph)
    saturation = Saturation(egraph, rules, search.options, search.observer)
    part = None
    if search.options.search == "focus-mcts":
        part = TreePart(egraph, saturation, search)
    with saturation.watching() as guard:
        ended = "extracted" if is_explored else ""
        reason, subgraphs = search_subgraphs(saturation, search, guard, ended=ended, tree=part)
    exploration = saturation.finish(reason, subgraphs)
    if part is None:
        return exploration
    return replace(exploration, decisions=tuple(DecisionReport.read(egraph.database)))


def search_subgraphs(
    saturation: Saturation,
    search: SearchSettings,
    guard: Guard,
    *,
    ended: str = "",
    started_s: float | None = None,
    tree: TreePart | None = None,
    noted: Callable[[SubgraphReport], None] | None = None,
) -> tuple[str, tuple[SubgraphReport, ...]]:
    """Grow subgraphs of an e-graph; return why the last was the last, and all of them.

    Args:
        ended: why the e-graph was not explored further before; "" where it is an original graph alone.
        started_s: when the search began, by ``time.perf_counter``; None for now.
        noted: called with each subgraph once that is extracted from.
    """
    egraph, subgraphs = saturation.subgraph.egraph, None
    options, chooser = search.options, search.chooser
    try:
        first = chooser.choose(saturation.iteration) if ended else None
        begin_subgraphs(egraph)
        limit = options.universe_limit + (egraph.e_nodes if ended else 0)
        watch = search.observer.watch
        subgraphs = GrownSubgraphs(egraph, saturation, chooser, watch, limit, started_s, noted)
        opened = subgraphs.begin_with(first, options.node_limit, ended) if first else None
        focus = Focus(subgraphs, options, chooser.original_us, search.seed, guard, opened, tree)
        plan = focus.plan()
        request = next(plan, None)
        while request is not None:
            answer = request()
            try:
                request = plan.send(answer)
            except StopIteration:
                request = None
        reason = "closed" if subgraphs.is_closed else "focus"
    except SearchOver as over:
        reason = str(over)
    except Interrupted:
        reason = guard.reason or "interrupted"
    except OutOfMemory:
        reason = "memory"
    # What is extracted from has to be shown, also where time is over just now.
    while egraph.is_universe:
        egraph.database.resume()
        with suppress(Interrupted):
            show_universe(egraph)
            break
    return reason, () if subgraphs is None else tuple(subgraphs.reports)


class Focus:
    """The plan of a search: what is grown next, by what has come of the subgraphs so far."""

    def __init__(
        self,
        subgraphs: GrownSubgraphs,
        options: ExplorationOptions,
        original_us: float,
        seed: int,
        guard: Guard,
        first: SubgraphReport | None = None,
        tree: TreePart | None = None,
    ) -> None:
        """Begin.

        Args:
            first: what the first subgraph is grown from, instead of the original graph.
            tree: a search that follows once restarts of the first width find nothing; None for none.
        """
        self._tree = tree
        self._subgraphs = subgraphs
        self._options = options
        self._original_us = original_us
        self._random = Random(seed)
        self._guard = guard
        self._shares = cycle(_SHARES)
        self._rounds: int | None = None
        self._more_rounds: int | None = None
        self._best = self._first = first

    def plan(self) -> _Plan:
        """Yield one request after the other; each is answered before the next one is asked for."""
        for width in self._widths():
            start = self._grow_first(width) if self._first is None else self._grow("chosen", width)
            yield from self._follow((yield from start))
            yield from self._restart(width)
            if self._tree is not None and width == self._first_width:
                yield from self._search_tree(self._tree, width)
            grown = (w for w in self._subgraphs.reports if w.kind not in _NOT_GROWN)
            if all(w.stop_reason != "nodes" for w in grown if w.node_limit == width):
                break  # wider subgraphs would be the same

    def _search_tree(self, tree: TreePart, width: int) -> _Plan:
        """Search by a tree, and begin again from the graph of its cheapest subgraph."""
        if self._subgraphs.is_closed:  # it would find nothing else
            return
        n_before = len(self._subgraphs.reports)
        yield partial(self._subgraphs.grow_tree, tree, self._guard)
        found = self._subgraphs.reports[n_before:]
        yield from self._extract_all(width)
        # What the subgraphs from there find is compared among themselves: what is costly now may lead on.
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
            variation = self._next_variation()
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

        What a closed subgraph has, others have not more of. Nor is one grown from a graph that costs what
        the seed of another of this width did: from there on, restarts mostly find what was found before.
        """
        while _is_less(subgraph.best_us, subgraph.seed_us) and not self._subgraphs.is_closed:
            if self._subgraphs.has_grown_from(subgraph.best_us, subgraph.node_limit):
                break
            subgraph = yield from self._grow("chosen", subgraph.node_limit, variation, subgraph)

    def _extract_all(self, width: int) -> _Plan:
        """Extract from all subgraphs together, and go on from there, until that has nothing cheaper."""
        while (subgraph := (yield partial(self._subgraphs.extract_all, width))) is not None:
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
        start = start or self._best
        if kind == "original" or start is None:
            growth = Growth(kind, self._subgraphs.original(), self._original_us, width, variation)
        else:
            others = self._subgraphs.original() if kind == "beside" else []
            enodes = list(dict.fromkeys([*others, *self._subgraphs.choice(start)]))
            growth = Growth(kind, enodes, start.best_us, width, variation)
        subgraph = yield partial(self._subgraphs.grow, growth, self._guard)
        assert subgraph is not None
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

    def _next_variation(self) -> Variation:
        """Return how the subgraphs of the next restart are grown."""
        return Variation(self._random.getrandbits(30), next(self._shares), self._rounds)

    @cached_property
    def _first_width(self) -> int:
        return self._options.first_subgraph_nodes(len(self._subgraphs.original()))

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
