"""The worlds of a search: grown, extracted from, written down.

A tree search is a part of focus: it finds what is missed where multi-pattern rules fire only once. It
begins with the original graph, in the universe of the worlds that focus has grown, and leaves two worlds
there: the cheapest of any rollout, and that of its decisions. What its rollouts built stays for
extraction.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from relational_tensat.base.records import record
from relational_tensat.base.watch import Guard, Watch
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.egraph.schema import create_search_tree, create_universe
from relational_tensat.explore.members import (
    Chooser,
    Members,
    Seed,
    choice_of,
    keep_world,
    original_nodes,
    show_universe,
)
from relational_tensat.explore.outcome import WorldReport
from relational_tensat.explore.strategies.policy import PLAIN, Variation
from relational_tensat.explore.strategies.saturation import Saturation
from relational_tensat.explore.strategies.strategy import SearchSettings

if TYPE_CHECKING:
    from relational_tensat.explore.strategies.mcts.decisions import TreeSearch

#: Kinds of worlds that a tree search leaves.
TREE_KINDS = ("rollout", "decision")

#: Part of the time that is left which a tree search may take.
_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class TreePart:
    """What a tree search needs of the search that it is a part of."""

    egraph: EGraph
    saturation: Saturation
    search: SearchSettings

    def run(
        self, n_worlds: int, started_s: float, guard: Guard
    ) -> tuple[str, tuple[WorldReport, ...]]:
        """Search; return why that ended, and the worlds, which are written down.

        Args:
            n_worlds: how many there are before.
            started_s: when the search began, by ``time.perf_counter``.
            guard: of the search: it stops no statement meanwhile.
        """
        with guard.deferring():
            search = self._set_up(n_worlds, started_s, guard)
            reason, worlds = search.run()
        self.saturation.go_on_after(search.iteration)
        return reason, worlds

    def _set_up(self, n_worlds: int, started_s: float, guard: Guard) -> TreeSearch:
        """Begin the tree search."""
        from relational_tensat.explore.strategies.mcts.decisions import TreePlace, TreeSearch
        from relational_tensat.explore.worlds.universe import Universe  # few runs need them

        database, saturation = self.egraph.database, self.saturation
        left_s = guard.seconds_left
        limit_s = None if left_s == math.inf else _SHARE * left_s
        with self.egraph.transaction():
            show_universe(self.egraph)
            create_universe(database)
            create_search_tree(database)
            saturation.world.end_members()
            universe = Universe(saturation.world)
            universe.find()
            place = TreePlace(
                iteration=saturation.iteration,
                worlds=n_worlds,
                started_s=started_s,
                is_all=False,
            )
            return TreeSearch(universe, self.search, saturation.journal, place, limit_s)


#: Why a world is not grown further, and the search goes on.
_GROWN = frozenset({"saturated", "closed", "nodes", "iterations"})

#: Costs that differ by less than this part are equal.
EQUAL_COSTS = 1e-6


class SearchOver(Exception):  # noqa: N818  # a control signal, not an error
    """No other world is grown; the reason is the argument."""


@record
class Growth:
    """What a world is grown from, and how.

    Attributes:
        kind: original (the original graph), chosen (a cheapest graph), or beside (both); see
            ``WorldReport``.
        enodes: what it is grown from, operands first, closed under children.
        seed_us: cost of the cheapest graph among these.
        node_limit: the most e-nodes that it may have.
    """

    kind: str
    enodes: Sequence[int]
    seed_us: float
    node_limit: int
    variation: Variation = PLAIN


class GrownWorlds:
    """The worlds of one universe, one after the other.

    Attributes:
        reports: of the worlds so far, in order.
    """

    def __init__(
        self,
        egraph: EGraph,
        saturation: Saturation,
        chooser: Chooser,
        watch: Watch,
        universe_limit: int,
        started_s: float | None = None,
        noted: Callable[[WorldReport], None] | None = None,
    ) -> None:
        """Begin without worlds.

        Args:
            started_s: when the search began, by ``time.perf_counter``; None for now.
            noted: called with each world that was grown and extracted from.
        """
        self._noted = noted
        self.reports: list[WorldReport] = []
        self._egraph = egraph
        self._database = egraph.database
        self._saturation = saturation
        self._chooser = chooser
        self._watch = watch
        self._universe_limit = universe_limit
        self._started = time.perf_counter() if started_s is None else started_s
        self._size_extracted = 0
        self._since = 0

    @property
    def is_closed(self) -> bool:
        """Whether a world grown from the original graph has all that the rules can add to it."""
        return any(
            world.kind == "original" and world.stop_reason == "closed" for world in self.reports
        )

    def has_grown_from(self, cost_us: float, node_limit: int) -> bool:
        """Whether a world of this width was grown from a chosen graph of this cost; see ``begin_anew``."""
        return any(
            world.kind == "chosen"
            and world.node_limit == node_limit
            and abs(world.seed_us - cost_us) <= EQUAL_COSTS * cost_us
            for world in self.reports[self._since :]
        )

    def begin_anew(self) -> None:
        """Let no world so far count as one that has been grown from a cost."""
        self._since = len(self.reports)

    def grow(self, growth: Growth, guard: Guard) -> WorldReport:
        """Grow a world and extract from it.

        Raises:
            SearchOver: a limit of the search was reached.
        """
        members = Members(self._egraph, len(self.reports) + 1, self._universe_limit)
        self._saturation.begin_world(members, growth.enodes, growth.node_limit, growth.variation)
        reason = self._saturation.grow(guard)
        if reason not in _GROWN:
            raise SearchOver(reason)
        seed = self._chooser.choose(self._saturation.iteration)
        return self._note(growth, seed, members.size, reason)

    def grow_tree(self, tree: TreePart, guard: Guard) -> list[WorldReport]:
        """Search by a tree from the original graph; return the worlds that it leaves.

        Raises:
            SearchOver: a limit of the search was reached.
        """
        n_worlds = len(self.reports)
        reason, found = tree.run(n_worlds, self._started, guard)
        self.reports += found
        if reason in ("memory", "interrupted") or guard.reason or len(self.reports) == n_worlds:
            raise SearchOver(guard.reason or reason)
        if self.reports[-1].universe >= self._universe_limit:
            raise SearchOver("universe")
        return self.reports[n_worlds:]

    def begin_with(self, seed: Seed, node_limit: int, reason: str) -> WorldReport:
        """Note the e-graph as it is, which was explored before, as the first world.

        Args:
            seed: the cheapest graph of it.
            node_limit: of saturation.
            reason: why that ended.

        Raises:
            SearchOver: a limit of the search was reached.
        """
        growth = Growth("saturation", (), self._chooser.original_us, node_limit)
        return self._note(growth, seed, self._egraph.e_nodes, reason)

    def extract_all(self, node_limit: int) -> WorldReport | None:
        """Extract from the universe; None where nothing has been built since that was done.

        Args:
            node_limit: of the worlds so far.

        Raises:
            SearchOver: a limit of the search was reached.
        """
        size = self.reports[-1].universe
        if size == self._size_extracted:
            return None
        self._size_extracted = size
        best_us = min(report.best_us for report in self.reports)
        with self._egraph.transaction():
            if self.reports[0].kind == "saturation":  # that has been extracted from
                self._database.run("worlds/show_worlds")
            else:
                show_universe(self._egraph)
        seed = self._chooser.choose(self._saturation.iteration, again=True)
        return self._note(Growth("universe", (), best_us, node_limit), seed, size, "extracted")

    def original(self) -> list[int]:
        """Return the e-nodes of the original graph, operands first."""
        return original_nodes(self._database)

    def choice(self, world: WorldReport) -> list[int]:
        """Return the e-nodes of a world's cheapest graph, operands first."""
        rows = self._database.run("worlds/choice", world=world.world)
        return list(choice_of(rows, self._egraph.find(self._egraph.root)).values())

    def _note(self, growth: Growth, seed: Seed, size: int, reason: str) -> WorldReport:
        """Write down a world and its cheapest graph.

        Raises:
            SearchOver: a limit of the search was reached meanwhile.
        """
        report = WorldReport(
            len(self.reports) + 1,
            growth.kind,
            growth.node_limit,
            growth.seed_us,
            seed.cost_us,
            size,
            self._egraph.e_nodes,
            self._saturation.iteration,
            reason,
            time.perf_counter() - self._started,
        )
        with self._egraph.transaction():
            keep_world(self._database, report, seed.enodes)
        return self._add(report)

    def _add(self, report: WorldReport) -> WorldReport:
        """Add a world's report.

        Raises:
            SearchOver: a limit of the search was reached meanwhile.
        """
        self.reports.append(report)
        if self._noted is not None:
            self._noted(report)
        if self._watch.happened:  # while it was extracted from
            raise SearchOver("interrupted")
        if report.universe >= self._universe_limit:
            raise SearchOver("universe")
        return report
