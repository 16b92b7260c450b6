"""Decisions: which rule to apply next is decided by the rollouts of a tree, then it is applied, and so on.

All subgraphs are parts of one universe (``explore.subgraphs``): e-nodes that a rollout finds and builds
stay there for all others, and the last extraction chooses from all of them.

A decision is one transaction: a killed process leaves the universe before it. A time limit or Ctrl-C ends a
tree between two steps of its rollouts, and what these have found is kept.

A run by tree search alone begins in the universe of all that is there.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from relational_tensat.base.plan import Plan, carried_out
from relational_tensat.base.records import record
from relational_tensat.egraph.database import Interrupted, OutOfMemory
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.egraph.schema import create_search_tree, create_universe
from relational_tensat.explore.members import (
    Seed,
    begin_subgraphs,
    end_search,
    follow_members,
    keep_subgraph,
    show_universe,
)
from relational_tensat.explore.outcome import (
    DecisionReport,
    Exploration,
    IterationReport,
    Journal,
    SubgraphReport,
)
from relational_tensat.explore.strategies.mcts.rewards import Rewards
from relational_tensat.explore.strategies.mcts.rollouts import Simulator
from relational_tensat.explore.strategies.mcts.search_state import (
    first_state,
    write_decision,
    write_subgraph,
    write_tree,
)
from relational_tensat.explore.strategies.mcts.tree import Tree, TreeNode
from relational_tensat.explore.strategies.strategy import SearchSettings
from relational_tensat.explore.subgraph import begin_subgraph, end_exploration, write_down
from relational_tensat.explore.subgraphs.applications import write_applications
from relational_tensat.explore.subgraphs.cheap_graph import CheapGraph
from relational_tensat.explore.subgraphs.node_costs import SignatureCosts
from relational_tensat.explore.subgraphs.universe import Universe
from relational_tensat.rules.model import Rule


@record
class TreePlace:
    """The state of a search before its tree search.

    Attributes:
        iteration: the last one.
        subgraphs: how many it has grown.
        started_s: when it began, by ``time.perf_counter``.
        is_all: whether the tree search is all of the search; else the search goes on after it.
    """

    iteration: int
    subgraphs: int
    started_s: float
    is_all: bool = True


class TreeSearch:
    """A tree search in a universe.

    Attributes:
        decisions: those so far.
    """

    def __init__(
        self,
        universe: Universe,
        search: SearchSettings,
        journal: Journal,
        place: TreePlace,
        prices: SignatureCosts,
        time_limit_s: float | None,
    ) -> None:
        """Begin with the original graph, in the caller's transaction.

        Args:
            search: its options; an iteration is a decision.
            journal: has the iterations of the search before.
            prices: the costs of kernels, by the chooser.
        """
        chooser, tree_options = search.chooser, search.tree
        self._universe = universe
        self._egraph = universe.egraph
        self._database = universe.egraph.database
        self._options = tree_options
        self._chooser = chooser
        self._observer = search.observer
        self._journal = journal
        self._place = place
        self._guard = search.observer.watch.guard(self._interrupt, time_limit_s)
        self._may_interrupt = False
        self._undecided: IterationReport | None = None
        self._extra = 0
        options = universe.subgraph.options
        self._node_limit = options.first_subgraph_nodes()
        self._rewards = Rewards(
            universe, chooser, tree_options.extractor, prices, self._should_stop
        )
        original = universe.original()
        self._state = first_state(original, self._rewards, search.seed)
        self._simulator = Simulator(
            universe,
            tree_options,
            self._node_limit,
            self._rewards,
            self._state,
            self._should_stop,
        )
        write_down(self._universe.subgraph, self._journal)

    @property
    def decisions(self) -> list[DecisionReport]:
        """Those so far."""
        return self._state.decisions

    def run(self) -> Plan[tuple[str, tuple[SubgraphReport, ...]]]:
        """Decide until there is a reason to stop; return it, and the subgraphs that are kept."""
        subgraphs: tuple[SubgraphReport, ...] = ()
        with self._guard.watching():
            try:
                reason = yield from self._search()
                subgraphs = yield from self._keep_subgraphs(reason)
            except Interrupted:  # just when extraction from a subgraph had ended
                reason = self._reason_to_end or "interrupted"
            except OutOfMemory:
                reason = "memory"
        self._database.resume()
        yield partial(show_universe, self._egraph)
        if not self._place.is_all and self._guard.reason == "interrupted":
            reason = "interrupted"  # perhaps while subgraphs were kept: nothing follows, either
        return reason, subgraphs

    @property
    def iteration(self) -> int:
        """The last one: a decision, or rollouts that came to none."""
        return self._place.iteration + len(self._state.decisions) + self._extra

    def _search(self) -> Plan[str]:
        """Decide until there is a reason to stop; return it."""
        reason = None
        while reason is None:
            mark = self._journal.mark()
            try:
                with self._universe.subgraph.transaction():
                    reason = yield from self._decide()
                    if self._place.subgraphs:
                        became = self._universe.arrays.became
                        yield partial(follow_members, self._database, became)
                    yield self._rewards.signatures.refresh
                    self._state.refresh(self._rewards)
                    yield partial(write_down, self._universe.subgraph, self._journal)
            except OutOfMemory:
                self._journal.undo(mark)
                raise
            if reason is None:
                if self._observer.progress is not None:
                    self._observer.progress(self._journal.log[-1])
                reason = yield from self._follow()
        return reason

    def _follow(self) -> Plan[str | None]:
        """Do what follows a decision; return a reason to stop."""
        after = self._observer.after
        reason = None if after is None else (yield partial(after, self.iteration))
        best = _seed_of(self._state.best.graph)
        yield partial(self._chooser.note, best, self.iteration)
        if self._state.root.cost_us < self._options.threshold_us:
            return "threshold"
        return reason

    def _reason_to_stop(self, root: TreeNode) -> str | None:
        """Return why no other rule is applied to the real subgraph."""
        if not root.live:
            return "saturated"
        if not root.is_whole or len(root.members) >= self._node_limit:
            return "nodes"
        if len(self._state.decisions) >= self._options.decisions:
            return "iterations"
        return self._reason_to_end

    def _decide(self) -> Plan[str | None]:
        """Grow a tree, and let the child of the best mean be the real subgraph; return a reason to stop."""
        before = self._sizes()
        root = self._state.root
        root.live = yield from self._simulator.live_rules(root.members)
        reason = self._reason_to_stop(root)
        if reason is not None:
            return reason
        decision = self.iteration + 1
        tree = Tree(root, self._options, self._state.rng)
        rollouts = yield from self._simulator.grow(tree, decision)
        yield partial(write_tree, self._database, decision, tree.nodes)
        best = None if self._should_stop() else tree.best_child()
        if best is None:
            reason = self._reason_to_end or ("nodes" if self._universe.is_full else "saturated")
            self._undecided = self._iteration_since(before)
            return reason
        self._journal.note_iteration(self._iteration_since(before))
        yield from self._apply(best, rollouts)
        return None

    def _sizes(self) -> tuple[float, int, int, int]:
        """Return the time, and how many statements, unions and applications there have been."""
        universe = self._universe
        counts = self._database.statements, universe.unions, universe.applications.count
        return time.perf_counter(), *counts

    def _iteration_since(self, before: tuple[float, int, int, int]) -> IterationReport:
        """Return what has been done since then as an iteration."""
        started, *counts = before
        now, *counts_now = self._sizes()
        statements, unions, found = (a - b for a, b in zip(counts_now, counts, strict=True))
        egraph = self._egraph
        return IterationReport(
            self.iteration + 1,
            egraph.e_nodes,
            egraph.e_classes,
            found,
            unions,
            0,
            statements,
            now - started,
        )

    def _apply(self, best: TreeNode, rollouts: int) -> Plan[None]:
        """Let a node of the tree be the real subgraph, and write that down."""
        assert best.history is not None
        report = DecisionReport(
            self.iteration + 1,
            best.rule,
            self._universe.subgraph.rules.rule(best.rule).rule.name,
            rollouts,
            best.mean_ms,
            best.cost_us,
            self._state.best.cost_us,
            len(best.members),
            self._egraph.e_nodes,
            time.perf_counter() - self._place.started_s,
        )
        live, applications = self._state.root.live, best.history.applications
        yield partial(write_decision, self._database, report, live, applications)
        self._state.decisions.append(report)
        self._state.root = TreeNode(
            0, None, 0, best.members, best.graph, best.history, is_whole=best.is_whole
        )

    def _keep_subgraphs(self, reason: str) -> Plan[tuple[SubgraphReport, ...]]:
        """Write the cheapest subgraph of any rollout and the real one, and the cheapest graphs of both."""
        root, best = self._state.root, self._state.best
        if not self._place.is_all and self._undecided is not None:
            # rollouts that came to no decision are an iteration: later ones have iterations of their own
            self._journal.note_iteration(self._undecided)
            self._extra = 1
            if self._observer.progress is not None:
                self._observer.progress(self._undecided)
        yield partial(self._chooser.note, _seed_of(best.graph), self.iteration)
        kept = [("decision", root.history, root.known_graph)]
        if best.history is not None:
            kept.insert(0, ("rollout", best.history, best.graph))
        found: list[tuple[SubgraphReport, Seed]] = []
        for number, (kind, history, graph) in enumerate(kept, start=self._place.subgraphs + 1):
            with self._egraph.transaction():
                original = yield self._universe.original
                size = yield partial(write_subgraph, self._universe, number, original, history)
                yield partial(self._database.run, "subgraphs/show", subgraph=number)
            seed = yield from self._choose(graph)
            report = SubgraphReport(
                number,
                kind,
                self._node_limit,
                self._chooser.original_us,
                seed.cost_us,
                size,
                self._egraph.e_nodes,
                self.iteration,
                reason,
                time.perf_counter() - self._place.started_s,
            )
            found.append((report, seed))
        with self._egraph.transaction():
            for report, seed in found:
                yield partial(keep_subgraph, self._database, report, seed.enodes)
            yield partial(write_down, self._universe.subgraph, self._journal)
            yield partial(write_applications, self._database, self._universe.applications)
        return tuple(report for report, _ in found)

    def _choose(self, graph: CheapGraph) -> Plan[Seed]:
        """Return the cheapest graph of the shown subgraph; where there is no time, that by moves."""
        self._may_interrupt = True
        try:
            if not self._should_stop():
                seed: Seed = yield partial(self._chooser.choose, self.iteration, again=True)
                return seed
        except Interrupted:
            pass
        finally:
            self._may_interrupt = False
            self._database.resume()
        return _seed_of(graph)

    @property
    def _reason_to_end(self) -> str | None:
        """Why the search is to end now: its time is over, or Ctrl-C was pressed."""
        watch = self._observer.watch
        if watch.happened:
            return "interrupted"
        return self._guard.reason or ("time" if watch.is_over else None)

    def _should_stop(self) -> bool:
        return self._reason_to_end is not None

    def _interrupt(self) -> None:
        """Stop extraction; rollouts ask themselves whether to stop."""
        if self._may_interrupt:
            self._database.interrupt()

    @property
    def has_all(self) -> bool:
        """Whether no rule changes the real subgraph, and nothing was kept out of the universe."""
        universe = self._universe
        return not self._state.root.live and not universe.is_full and not universe.rejected


def _seed_of(graph: CheapGraph) -> Seed:
    """Return the cheapest graph by moves."""
    return Seed(graph.cost_us, tuple(graph.chosen().values()))


@carried_out
def explore_tree(
    egraph: EGraph,
    rules: Sequence[Rule],
    search: SearchSettings,
) -> Plan[Exploration]:
    """Grow the subgraphs of a tree search, decision by decision, until one of its limits is reached.

    Args:
        egraph: subgraphs begin with its original graph; e-nodes that earlier explorations built are there.
        search: each subgraph has at most ``first_subgraph_nodes()`` e-nodes, all together
            ``universe_limit``; the chooser prices e-nodes, and extracts from the subgraphs that are kept in
            the end; an iteration is a decision.

    Raises:
        UnsoundRuleError: as ``explore``.
    """
    database, journal = egraph.database, Journal()
    with egraph.transaction():
        if is_explored := end_search(egraph):
            show_universe(egraph)
        begin_subgraphs(egraph)
        create_universe(database)
        create_search_tree(database)
        universe = Universe(begin_subgraph(egraph, rules, search.options))
        yield universe.find
        prices = SignatureCosts(egraph.catalogue, search.chooser.prices_us)
        yield prices.refresh
        iteration = universe.subgraph.steps
        place = TreePlace(iteration=iteration, subgraphs=0, started_s=time.perf_counter())
        tree = TreeSearch(universe, search, journal, place, prices, search.options.time_limit_s)
    reason, subgraphs = yield from tree.run()
    with egraph.transaction():
        if reason != "memory" and not subgraphs:  # then they are as before the last decision
            yield partial(write_applications, database, universe.applications)
        ended = end_exploration(
            universe.subgraph, journal, reason, iteration + len(tree.decisions), place.started_s
        )
    return replace(
        ended,
        subgraphs=subgraphs,
        is_exhaustive=reason == "saturated" and not is_explored and tree.has_all,
        decisions=tuple(tree.decisions),
    )
