"""The subgraphs of a search: the origin of each, and its records.

A tree search is a part of focus: it finds what is missed where multi-pattern rules fire only once. It
begins with the original graph, in the universe of the subgraphs that focus has grown, and leaves two
subgraphs there: the cheapest of any rollout, and that of its decisions. E-nodes that its rollouts built
stay for extraction.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from relational_tensat.base.deadline import GainPatience
from relational_tensat.base.records import record
from relational_tensat.base.watch import Guard
from relational_tensat.egraph.database import Interrupted, OutOfMemory
from relational_tensat.egraph.schema import create_search_tree, create_universe
from relational_tensat.explore.members import (
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

#: Kinds of subgraphs that a tree search leaves.
TREE_KINDS = ("rollout", "decision")

#: Part of the time that is left which a tree search may take.
_SHARE = 0.5

#: Why a subgraph is not grown further, and the search goes on.
GROWN = frozenset({"saturated", "closed", "nodes", "iterations"})

#: Costs that differ by less than this part are equal.
EQUAL_COSTS = 1e-6


class SearchOver(Exception):  # noqa: N818  # a control signal, not an error
    """No other subgraph is grown; the reason is the argument."""


@record
class Growth:
    """The next growth: its origin and its limits.

    Attributes:
        kind: original (from the original graph), chosen (a cheapest graph), or beside (both); saturation:
            the e-graph from before; universe: all subgraphs are extracted from together; tree: a tree
            search.
        node_limit: the most e-nodes that a subgraph may have.
        seed_us: cost of the cheapest graph that it is grown from.
        start: the subgraph whose cheapest graph it is grown from; None for the original graph.
    """

    kind: str
    node_limit: int
    seed_us: float
    start: SubgraphReport | None = None
    variation: Variation = PLAIN


class GrownSubgraphs:
    """The subgraphs of one universe, one after the other.

    Attributes:
        reports: of the subgraphs so far, in order.
        limit: the most e-nodes that the universe may have.
        reason: why the last was the last; see ``ending``.
    """

    def __init__(
        self,
        saturation: Saturation,
        search: SearchSettings,
        limit: int,
        started_s: float,
        guard: Guard,
        patience: GainPatience | None = None,
    ) -> None:
        """Begin without subgraphs.

        Args:
            started_s: when the search began, by ``time.perf_counter``.
            guard: of the search.
            patience: says by what subgraphs gain how long the search goes on; None for its limits alone.
        """
        self.reports: list[SubgraphReport] = []
        self.limit = limit
        self.reason = ""
        self._guard = guard
        self._patience = patience
        self._egraph = saturation.subgraph.egraph
        self._database = self._egraph.database
        self._saturation = saturation
        self._search = search
        self._started = started_s
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

    def original(self) -> list[int]:
        """Return the e-nodes of the original graph, operands first."""
        return original_nodes(self._database)

    def seed_of(self, growth: Growth) -> list[int]:
        """Return the e-nodes that a subgraph is grown from, operands first, closed under children."""
        if growth.start is None:
            return self.original()
        others = self.original() if growth.kind == "beside" else []
        rows = self._database.run("subgraphs/choice", subgraph=growth.start.subgraph)
        chosen = choice_of(rows, self._egraph.find(self._egraph.root)).values()
        return list(dict.fromkeys([*others, *chosen]))

    def show_all(self) -> int:
        """Show what is extracted from all subgraphs together; return how many e-nodes that are."""
        with self._egraph.transaction():
            if self.reports[0].kind == "saturation":  # that has been extracted from
                self._database.run("subgraphs/show_subgraphs")
            else:
                show_universe(self._egraph)
        return self.reports[-1].universe

    def note(self, growth: Growth, seed: Seed, size: int, reason: str) -> SubgraphReport:
        """Write down a subgraph and its cheapest graph.

        Args:
            seed: that graph.
            size: e-nodes of the subgraph.
            reason: why it was not grown further.

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
        self.reports.append(report)
        if self._patience is not None:
            self._guard.end_at(self._patience.note(report.best_us), "patience")
        if self._search.observer.watch.happened:  # while it was extracted from
            raise SearchOver("interrupted")
        if report.universe >= self.limit:
            raise SearchOver("universe")
        return report

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Say why the search within ended; then show what is extracted from."""
        try:
            yield
            self.reason = "closed" if self.is_closed else "focus"
        except SearchOver as over:
            self.reason = str(over)
        except Interrupted:
            self.reason = self._guard.reason or "interrupted"
        except OutOfMemory:
            self.reason = "memory"
        while self._egraph.is_universe:  # also where time is over just now
            self._database.resume()
            with suppress(Interrupted):
                show_universe(self._egraph)
                return

    def grow_tree(self) -> SubgraphReport:
        """Search by a tree from the original graph; add the subgraphs that it leaves, return the last.

        The search's guard stops no statement meanwhile.

        Raises:
            SearchOver: a limit of the search was reached.
        """
        from relational_tensat.base.plan import carried_out
        from relational_tensat.explore.strategies.mcts.decisions import TreePlace, TreeSearch
        from relational_tensat.explore.subgraphs.node_costs import SignatureCosts
        from relational_tensat.explore.subgraphs.universe import Universe  # few runs need them

        n_subgraphs, saturation, guard = len(self.reports), self._saturation, self._guard
        with guard.deferring():
            left_s = guard.seconds_left
            limit_s = None if left_s == math.inf else _SHARE * left_s
            with self._egraph.transaction():
                show_universe(self._egraph)
                create_universe(self._database)
                create_search_tree(self._database)
                saturation.subgraph.end_members()
                universe = Universe(saturation.subgraph)
                universe.find()
                place = TreePlace(
                    iteration=saturation.iteration,
                    subgraphs=n_subgraphs,
                    started_s=self._started,
                    is_all=False,
                )
                prices = SignatureCosts(self._egraph.catalogue, self._search.chooser.prices_us)
                journal = saturation.journal
                tree = TreeSearch(universe, self._search, journal, place, prices, limit_s)
            reason, found = carried_out(tree.run)()
        saturation.go_on_after(tree.iteration)
        self.reports += found
        if reason in ("memory", "interrupted") or guard.reason or not found:
            raise SearchOver(guard.reason or reason)
        if self.reports[-1].universe >= self.limit:
            raise SearchOver("universe")
        return self.reports[-1]
