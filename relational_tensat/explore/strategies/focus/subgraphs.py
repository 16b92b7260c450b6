"""The subgraphs of a search: grown, extracted from, written down.

A tree search is a part of focus: it finds what is missed where multi-pattern rules fire only once. It
begins with the original graph, in the universe of the subgraphs that focus has grown, and leaves two
subgraphs
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
    keep_subgraph,
    original_nodes,
    show_universe,
)
from relational_tensat.explore.outcome import SubgraphReport
from relational_tensat.explore.strategies.policy import PLAIN, Variation
from relational_tensat.explore.strategies.saturation import Saturation
from relational_tensat.explore.strategies.strategy import SearchSettings

if TYPE_CHECKING:
    from relational_tensat.explore.strategies.mcts.decisions import TreeSearch

#: Kinds of subgraphs that a tree search leaves.
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
        self, n_subgraphs: int, started_s: float, guard: Guard
    ) -> tuple[str, tuple[SubgraphReport, ...]]:
        """Search; return why that ended, and the subgraphs, which are written down.

        Args:
            n_subgraphs: how many there are before.
            started_s: when the search began, by ``time.perf_counter``.
            guard: of the search: it stops no statement meanwhile.
        """
        with guard.deferring():
            search = self._set_up(n_subgraphs, started_s, guard)
            reason, subgraphs = search.run()
        self.saturation.go_on_after(search.iteration)
        return reason, subgraphs

    def _set_up(self, n_subgraphs: int, started_s: float, guard: Guard) -> TreeSearch:
        """Begin the tree search."""
        from relational_tensat.explore.strategies.mcts.decisions import TreePlace, TreeSearch
        from relational_tensat.explore.subgraphs.universe import Universe  # few runs need them

        database, saturation = self.egraph.database, self.saturation
        left_s = guard.seconds_left
        limit_s = None if left_s == math.inf else _SHARE * left_s
        with self.egraph.transaction():
            show_universe(self.egraph)
            create_universe(database)
            create_search_tree(database)
            saturation.subgraph.end_members()
            universe = Universe(saturation.subgraph)
            universe.find()
            place = TreePlace(
                iteration=saturation.iteration,
                subgraphs=n_subgraphs,
                started_s=started_s,
                is_all=False,
            )
            return TreeSearch(universe, self.search, saturation.journal, place, limit_s)


#: Why a subgraph is not grown further, and the search goes on.
_GROWN = frozenset({"saturated", "closed", "nodes", "iterations"})

#: Costs that differ by less than this part are equal.
EQUAL_COSTS = 1e-6


class SearchOver(Exception):  # noqa: N818  # a control signal, not an error
    """No other subgraph is grown; the reason is the argument."""


@record
class Growth:
    """What a subgraph is grown from, and how.

    Attributes:
        kind: original (the original graph), chosen (a cheapest graph), or beside (both); see
            ``SubgraphReport``.
        enodes: what it is grown from, operands first, closed under children.
        seed_us: cost of the cheapest graph among these.
        node_limit: the most e-nodes that it may have.
    """

    kind: str
    enodes: Sequence[int]
    seed_us: float
    node_limit: int
    variation: Variation = PLAIN


class GrownSubgraphs:
    """The subgraphs of one universe, one after the other.

    Attributes:
        reports: of the subgraphs so far, in order.
    """

    def __init__(
        self,
        egraph: EGraph,
        saturation: Saturation,
        chooser: Chooser,
        watch: Watch,
        universe_limit: int,
        started_s: float | None = None,
        noted: Callable[[SubgraphReport], None] | None = None,
    ) -> None:
        """Begin without subgraphs.

        Args:
            started_s: when the search began, by ``time.perf_counter``; None for now.
            noted: called with each subgraph that was grown and extracted from.
        """
        self._noted = noted
        self.reports: list[SubgraphReport] = []
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
        """Whether a subgraph grown from the original graph has all that the rules can add to it."""
        return any(
            subgraph.kind == "original" and subgraph.stop_reason == "closed"
            for subgraph in self.reports
        )

    def has_grown_from(self, cost_us: float, node_limit: int) -> bool:
        """Whether a subgraph of this width grew from a chosen graph of this cost; see ``begin_again``."""
        return any(
            subgraph.kind == "chosen"
            and subgraph.node_limit == node_limit
            and abs(subgraph.seed_us - cost_us) <= EQUAL_COSTS * cost_us
            for subgraph in self.reports[self._since :]
        )

    def begin_again(self) -> None:
        """Let no subgraph so far count as one that has been grown from a cost."""
        self._since = len(self.reports)

    def grow(self, growth: Growth, guard: Guard) -> SubgraphReport:
        """Grow a subgraph and extract from it.

        Raises:
            SearchOver: a limit of the search was reached.
        """
        members = Members(self._egraph, len(self.reports) + 1, self._universe_limit)
        self._saturation.begin_subgraph(members, growth.enodes, growth.node_limit, growth.variation)
        reason = self._saturation.grow(guard)
        if reason not in _GROWN:
            raise SearchOver(reason)
        seed = self._chooser.choose(self._saturation.iteration)
        return self._note(growth, seed, members.size, reason)

    def grow_tree(self, tree: TreePart, guard: Guard) -> SubgraphReport:
        """Search by a tree from the original graph; note the subgraphs that it leaves, return the last.

        Raises:
            SearchOver: a limit of the search was reached.
        """
        n_subgraphs = len(self.reports)
        reason, found = tree.run(n_subgraphs, self._started, guard)
        self.reports += found
        if reason in ("memory", "interrupted") or guard.reason or len(self.reports) == n_subgraphs:
            raise SearchOver(guard.reason or reason)
        if self.reports[-1].universe >= self._universe_limit:
            raise SearchOver("universe")
        return self.reports[-1]

    def begin_with(self, seed: Seed, node_limit: int, reason: str) -> SubgraphReport:
        """Note the e-graph as it is, which was explored before, as the first subgraph.

        Args:
            seed: the cheapest graph of it.
            node_limit: of saturation.
            reason: why that ended.

        Raises:
            SearchOver: a limit of the search was reached.
        """
        growth = Growth("saturation", (), self._chooser.original_us, node_limit)
        return self._note(growth, seed, self._egraph.e_nodes, reason)

    def extract_all(self, node_limit: int) -> SubgraphReport | None:
        """Extract from the universe; None where nothing has been built since that was done.

        Args:
            node_limit: of the subgraphs so far.

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
                self._database.run("subgraphs/show_subgraphs")
            else:
                show_universe(self._egraph)
        seed = self._chooser.choose(self._saturation.iteration, again=True)
        return self._note(Growth("universe", (), best_us, node_limit), seed, size, "extracted")

    def original(self) -> list[int]:
        """Return the e-nodes of the original graph, operands first."""
        return original_nodes(self._database)

    def choice(self, subgraph: SubgraphReport) -> list[int]:
        """Return the e-nodes of a subgraph's cheapest graph, operands first."""
        rows = self._database.run("subgraphs/choice", subgraph=subgraph.subgraph)
        return list(choice_of(rows, self._egraph.find(self._egraph.root)).values())

    def _note(self, growth: Growth, seed: Seed, size: int, reason: str) -> SubgraphReport:
        """Write down a subgraph and its cheapest graph.

        Raises:
            SearchOver: a limit of the search was reached meanwhile.
        """
        report = SubgraphReport(
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
            keep_subgraph(self._database, report, seed.enodes)
        return self._add(report)

    def _add(self, report: SubgraphReport) -> SubgraphReport:
        """Add a subgraph's report.

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
