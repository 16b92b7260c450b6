"""The search: decide which rule to apply next by the rollouts of a tree, apply it, and so on.

All worlds are parts of one universe (``explore.worlds``): what a rollout finds and builds stays there for
all others, and the last extraction chooses from all of it.

A decision is one transaction: what a process that was killed leaves is where it was before it. A time limit
or Ctrl-C ends a tree between two steps of its rollouts, and what these have found is kept.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from relational_tensat.egraph.database import Interrupted, OutOfMemory
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.egraph.published import (
    create_search_tree,
    create_universe,
    create_worlds,
)
from relational_tensat.explore.checkpoint import Checkpoint
from relational_tensat.explore.ending import write_ending
from relational_tensat.explore.exploration_options import ExplorationOptions
from relational_tensat.explore.journal import Journal
from relational_tensat.explore.members import show_universe
from relational_tensat.explore.observer import Observer
from relational_tensat.explore.outcome import (
    DecisionReport,
    Exploration,
    IterationReport,
    WorldReport,
    read_log,
    rule_stats,
)
from relational_tensat.explore.seed import PricingChooser, Seed
from relational_tensat.explore.strategies.mcts.keeping import (
    write_decision,
    write_tree,
    write_world,
)
from relational_tensat.explore.strategies.mcts.rewards import Rewards
from relational_tensat.explore.strategies.mcts.search_state import (
    SearchState,
    first_state,
    read_state,
)
from relational_tensat.explore.strategies.mcts.simulation import Simulator
from relational_tensat.explore.strategies.mcts.tree import Tree, TreeNode
from relational_tensat.explore.strategies.mcts.tree_growth import TreeGrower
from relational_tensat.explore.strategies.mcts.tree_options import TreeOptions
from relational_tensat.explore.worlds.application_rows import write_applications
from relational_tensat.explore.worlds.moves import CheapGraph
from relational_tensat.explore.worlds.universe import Universe, begin_universe, restore_universe
from relational_tensat.explore.worlds.universe_checkpoint import write_universe_checkpoint
from relational_tensat.rules.model import Rule


def explore_tree(
    egraph: EGraph,
    rules: Sequence[Rule],
    options: ExplorationOptions,
    tree_options: TreeOptions,
    chooser: PricingChooser,
    *,
    seed: int = 0,
    observer: Observer | None = None,
    start: Checkpoint | None = None,
) -> Exploration:
    """Grow the worlds of a tree search, decision by decision, until one of its limits is reached.

    Args:
        egraph: holds an original graph and nothing else.
        options: each world has at most ``world_nodes`` e-nodes (or ``node_limit``, if that is less), all
            together ``universe_limit``.
        chooser: prices e-nodes, and extracts from the worlds that are kept in the end.
        seed: of all that is drawn.
        observer: as ``explore``; an iteration is a decision.
        start: where another process left a search of this e-graph, with these rules and options; it is
            resumed there, as ``explore`` resumes an exploration.

    Raises:
        UnsoundRuleError: as ``explore``.
    """
    search = _TreeSearch(
        egraph, rules, options, tree_options, chooser, seed, observer or Observer(), start
    )
    return search.run()


class _TreeSearch:
    """A search that is running."""

    def __init__(
        self,
        egraph: EGraph,
        rules: Sequence[Rule],
        options: ExplorationOptions,
        tree_options: TreeOptions,
        chooser: PricingChooser,
        seed: int,
        observer: Observer,
        start: Checkpoint | None,
    ) -> None:
        self._egraph = egraph
        self._database = egraph.database
        self._options = options
        self._tree_options = tree_options
        self._chooser = chooser
        self._observer = observer
        self._guard = observer.watch.guard(self._interrupt, options.time_limit_s)
        self._may_interrupt = False
        self._saw_all = start is None
        self._node_limit = min(options.world_nodes, options.node_limit)
        self._original_nodes = egraph.e_nodes if start is None else start.original
        self._universe: Universe
        self._rewards: Rewards
        self._state: SearchState
        with egraph.transaction():
            create_worlds(self._database)  # of the search before, or when it was about to end
            if start is None:
                self._begin(rules, seed)
            else:
                self._resume(rules, start)
        self._started = time.perf_counter()
        if self._state.decisions:
            self._started -= self._state.decisions[-1].seconds
        self._simulator = Simulator(
            self._universe,
            tree_options,
            self._node_limit,
            self._state.rng,
            self._state.averages,
            self._rewards,
            self._should_stop,
        )
        self._grower = TreeGrower(
            tree_options,
            self._simulator,
            self._rewards,
            self._state,
            self._database,
            self._should_stop,
        )

    def _begin(self, rules: Sequence[Rule], seed: int) -> None:
        """Begin with the original graph."""
        if self._database.is_file:  # of an exploration before this one
            self._database.script("explore/forget_exploration")
        create_universe(self._database)
        create_search_tree(self._database)
        self._journal = Journal([])
        universe = self._universe = begin_universe(self._egraph, rules, self._options)
        self._rewards = self._new_rewards()
        n_rules = universe.world.rules.first + len(universe.world.rules.rules)
        self._state = first_state(universe.original(), self._rewards, n_rules, seed)
        self._write_checkpoint()

    def _resume(self, rules: Sequence[Rule], start: Checkpoint) -> None:
        """Continue from what another process left in the tables."""
        self._database.run("tree/forget_nodes", decision=start.iteration)
        self._database.run("tree/forget_rollouts", decision=start.iteration)
        self._journal = Journal(read_log(self._database))
        universe = self._universe = restore_universe(self._egraph, rules, self._options, start)
        self._rewards = self._new_rewards()
        self._state = read_state(self._database, self._rewards)
        seconds = enumerate(start.rule_seconds, start=start.first_rule)
        universe.world.matcher.rule_seconds = {rule: taken for rule, taken in seconds if taken}

    def _new_rewards(self) -> Rewards:
        extractor = self._tree_options.extractor
        return Rewards(self._universe, self._chooser, extractor, self._should_stop)

    def run(self) -> Exploration:
        worlds: tuple[WorldReport, ...] = ()
        with self._guard.watching():
            try:
                reason = self._search()
                worlds = self._keep_worlds(reason)
            except Interrupted:  # just when extraction from a world had ended
                reason = self._reason_to_end or "interrupted"
            except OutOfMemory:
                reason = "memory"
        self._database.resume()
        show_universe(self._egraph)
        return self._finish(reason, worlds)

    def _search(self) -> str:
        """Decide until there is a reason to stop; return it."""
        reason = self._follow() if self._state.decisions else None
        while reason is None:
            mark = self._journal.mark()
            try:
                with self._universe.world.transaction():
                    reason = self._decide()
                    self._state.refresh(self._rewards)
                    self._write_checkpoint()
            except OutOfMemory:
                self._journal.undo(mark)
                raise
            if reason is None:
                if self._observer.progress is not None:
                    self._observer.progress(self._journal.log[-1])
                reason = self._follow()
        return reason

    def _follow(self) -> str | None:
        """Do what follows a decision; return a reason to stop."""
        after = self._observer.after
        reason = None if after is None else after(len(self._state.decisions))
        self._chooser.note(_seed_of(self._state.best.graph), len(self._state.decisions))
        if self._state.root.cost_us < self._tree_options.threshold_us:
            return "threshold"
        return reason

    def _reason_to_stop(self, root: TreeNode) -> str | None:
        """Return why no other rule is applied to the real world."""
        if not root.live:
            return "saturated"
        if not root.is_whole or len(root.members) >= self._node_limit:
            return "nodes"
        if len(self._state.decisions) >= self._tree_options.decisions:
            return "iterations"
        return self._reason_to_end

    def _decide(self) -> str | None:
        """Grow a tree, and let the child of the best mean be the real world; return a reason to stop."""
        started, statements = time.perf_counter(), self._database.statements
        unions, found = self._universe.unions, self._universe.applications.count
        root = self._state.root
        root.live = self._simulator.live_rules(root.members)
        reason = self._reason_to_stop(root)
        if reason is not None:
            return reason
        decision = len(self._state.decisions) + 1
        tree = Tree(root, self._tree_options, self._state.rng)
        rollouts = self._grower.grow(tree, decision)
        write_tree(self._database, decision, tree.nodes)
        if self._should_stop():
            return self._reason_to_end
        best = tree.best_child()
        if best is None:
            return "nodes" if self._universe.is_full else "saturated"
        self._journal.note_iteration(
            IterationReport(
                decision,
                self._egraph.e_nodes,
                self._egraph.e_classes,
                self._universe.applications.count - found,
                self._universe.unions - unions,
                0,
                self._database.statements - statements,
                time.perf_counter() - started,
            )
        )
        self._apply(best, rollouts)
        return None

    def _apply(self, best: TreeNode, rollouts: int) -> None:
        """Let a node of the tree be the real world, and write that down."""
        assert best.history is not None
        report = DecisionReport(
            len(self._state.decisions) + 1,
            best.rule,
            self._universe.world.rules.rule(best.rule).rule.name,
            rollouts,
            best.mean_ms,
            best.cost_us,
            self._state.best.cost_us,
            len(best.members),
            self._egraph.e_nodes,
            time.perf_counter() - self._started,
        )
        write_decision(self._database, report, self._state.root.live, best.history.applications)
        self._state.decisions.append(report)
        self._state.root = TreeNode(
            0, None, 0, best.members, best.graph, best.history, is_whole=best.is_whole
        )

    def _keep_worlds(self, reason: str) -> tuple[WorldReport, ...]:
        """Write the cheapest world of any rollout and the real one, and the cheapest graphs of both."""
        root, best = self._state.root, self._state.best
        assert root.graph is not None
        self._chooser.note(_seed_of(best.graph), len(self._state.decisions))
        kept = [("decision", root.history, root.graph)]
        if best.history is not None:
            kept.insert(0, ("rollout", best.history, best.graph))
        reports: list[WorldReport] = []
        for number, (kind, history, graph) in enumerate(kept, start=1):
            with self._egraph.transaction():
                size = write_world(self._universe, number, self._universe.original(), history)
                self._database.run("worlds/show", world=number)
            seed = self._choose(graph)
            reports.append(
                WorldReport(
                    number,
                    kind,
                    self._node_limit,
                    self._chooser.original_us,
                    seed.cost_us,
                    size,
                    self._egraph.e_nodes,
                    len(self._state.decisions),
                    reason,
                    time.perf_counter() - self._started,
                )
            )
            with self._egraph.transaction():
                self._database.run("worlds/keep_choice", world=number, enodes=list(seed.enodes))
                self._database.append("world", [reports[-1].row])
        return tuple(reports)

    def _choose(self, graph: CheapGraph) -> Seed:
        """Return the cheapest graph of the world that is shown; where there is no time, that by moves."""
        self._may_interrupt = True
        try:
            if not self._should_stop():
                return self._chooser.choose(len(self._state.decisions), anew=True)
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

    def _write_checkpoint(self) -> None:
        """Write down what another process would need to resume; in memory, none could."""
        if not self._database.is_file:
            return
        self._state.write(self._database, self._rewards)
        write_universe_checkpoint(
            self._universe, self._journal, len(self._state.decisions), self._original_nodes
        )

    def _finish(self, reason: str, worlds: tuple[WorldReport, ...]) -> Exploration:
        """Write down what is not written yet, and why it ended; return how it went."""
        database = self._database
        with self._egraph.transaction():
            if reason != "memory":  # then the tables have what they had before the last decision
                write_applications(database, self._universe.applications)
            database.run("tree/forget_state")
            write_ending(self._egraph, self._universe.world.matcher, self._journal)
            self._egraph.set_stop_reason(reason)
        log = self._journal.log
        return Exploration(
            reason,
            len(self._state.decisions),
            rule_stats(database, self._universe.world.rules.first),
            tuple(log),
            sum(entry.statements for entry in log),
            time.perf_counter() - self._started,
            worlds,
            is_exhaustive=reason == "saturated" and self._has_all,
            decisions=tuple(self._state.decisions),
        )

    @property
    def _has_all(self) -> bool:
        """Whether no rule changes the real world, and nothing was kept out of the universe."""
        universe = self._universe
        is_closed = not self._state.root.live
        return is_closed and self._saw_all and not universe.is_full and not universe.rejected


def _seed_of(graph: CheapGraph) -> Seed:
    """Return the cheapest graph by moves."""
    return Seed(graph.cost_us, tuple(graph.chosen().values()))
