"""The search: decide which rule to apply next by the rollouts of a tree, apply it, and so on.

All worlds are parts of one universe (``explore.worlds``): what a rollout finds and builds stays there for
all others, and the last extraction chooses from all of it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from relational_tensat.base.watch import Guard
from relational_tensat.egraph.database import Interrupted, OutOfMemory
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.egraph.published import create_search_tree, create_worlds
from relational_tensat.explore.checkpoint import Checkpoint, write_checkpoint
from relational_tensat.explore.exploration_options import ExplorationOptions
from relational_tensat.explore.journal import Journal
from relational_tensat.explore.members import show_universe
from relational_tensat.explore.observer import Observer
from relational_tensat.explore.outcome import (
    DecisionReport,
    Exploration,
    IterationReport,
    WorldReport,
    rule_stats,
)
from relational_tensat.explore.seed import PricingChooser
from relational_tensat.explore.strategies.mcts.keeping import (
    write_applications,
    write_decision,
    write_rollouts,
    write_tree,
    write_world,
)
from relational_tensat.explore.strategies.mcts.policies import Averages
from relational_tensat.explore.strategies.mcts.rewards import Rewards
from relational_tensat.explore.strategies.mcts.simulation import Simulator
from relational_tensat.explore.strategies.mcts.tree import History, Rollout, Tree, TreeNode
from relational_tensat.explore.strategies.mcts.tree_options import TreeOptions
from relational_tensat.explore.worlds.node_arrays import Ints
from relational_tensat.explore.worlds.universe import Universe
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
) -> Exploration:
    """Grow the worlds of a tree search, decision by decision, until one of its limits is reached.

    Args:
        egraph: holds an original graph and nothing else.
        options: each world has at most ``world_nodes`` e-nodes (or ``node_limit``, if that is less), all
            together ``universe_limit``.
        chooser: prices e-nodes, and extracts from the worlds that are kept in the end.
        seed: of all that is drawn.
        observer: as ``explore``; an iteration is a decision.

    Raises:
        UnsoundRuleError: as ``explore``.
    """
    search = _TreeSearch(
        egraph, rules, options, tree_options, chooser, seed, observer or Observer()
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
    ) -> None:
        self._egraph = egraph
        self._database = egraph.database
        self._options = options
        self._tree_options = tree_options
        self._chooser = chooser
        self._observer = observer
        self._started = time.perf_counter()
        self._journal = Journal([])
        self._decisions: list[DecisionReport] = []
        self._rng = np.random.default_rng(seed)
        self._node_limit = min(options.world_nodes, options.node_limit)
        self._original_nodes = egraph.e_nodes
        if self._database.is_file:  # of an exploration before this one
            self._database.script("explore/forget_exploration")
        create_worlds(self._database)
        create_search_tree(self._database)
        with egraph.transaction():
            self._universe = Universe(egraph, rules, options)
            self._write_checkpoint()
        compiled = self._universe.world.rules
        self._averages = Averages(compiled.first + len(compiled.rules))
        self._rewards = Rewards(self._universe, chooser, tree_options.extractor)
        self._simulator = Simulator(
            self._universe,
            tree_options,
            self._node_limit,
            self._rng,
            self._averages,
            self._rewards,
        )
        self._root = TreeNode(0, None, 0, self._original())
        self._root.graph = self._rewards.first(self._root.members)
        self._best_us = self._rewards.cost_us(self._root.graph)
        self._best: History | None = None

    def run(self) -> Exploration:
        guard = self._observer.watch.guard(self._database.interrupt, self._options.time_limit_s)
        worlds: tuple[WorldReport, ...] = ()
        with guard.watching():
            try:
                reason = self._search(guard)
                worlds = self._keep_worlds(reason)
            except Interrupted:
                reason = guard.reason or "interrupted"
            except OutOfMemory:
                reason = "memory"
        self._database.resume()
        show_universe(self._egraph)
        return self._finish(reason, worlds)

    def _search(self, guard: Guard) -> str:
        """Decide until there is a reason to stop; return it."""
        while True:
            root = self._root
            root.live = self._simulator.live_rules(root.members)
            if not root.live:
                return "saturated"
            if not root.is_whole or len(root.members) >= self._node_limit:
                return "nodes"
            if len(self._decisions) >= self._tree_options.decisions:
                return "iterations"
            self._decide()
            if self._root is root:
                return "nodes" if self._universe.is_full else "saturated"
            reason = self._follow(guard)
            if reason is not None:
                return reason

    def _follow(self, guard: Guard) -> str | None:
        """Do what follows a decision; return a reason to stop."""
        if self._root.cost_us < self._tree_options.threshold_us:
            return "threshold"
        if self._observer.progress is not None:
            self._observer.progress(self._journal.log[-1])
        after = self._observer.after
        reason = None if after is None else after(len(self._decisions))
        return reason or guard.reason

    def _decide(self) -> None:
        """Grow a tree, and let the child of the best mean be the real world."""
        started, statements = time.perf_counter(), self._database.statements
        decision, unions = len(self._decisions) + 1, self._universe.unions
        found = self._universe.applications.count
        root = self._root
        assert root.graph is not None
        root.graph = self._rewards.current(root.graph)
        tree = Tree(root, self._tree_options, self._rng)
        done = 0
        while done < self._tree_options.budget:
            most = min(self._tree_options.budget - done, self._tree_options.at_once)
            batch = self._batch(tree, most)
            if not batch:
                break
            times = most // len(batch)
            with self._universe.world.transaction():
                self._roll_out(tree, batch, times, decision)
            done += times * len(batch)
        best = tree.best_child()
        if best is None:
            return
        assert best.graph is not None
        report = DecisionReport(
            decision,
            best.rule,
            self._universe.world.rules.rule(best.rule).rule.name,
            done,
            best.mean_ms,
            best.cost_us,
            self._best_us,
            len(best.members),
            self._egraph.e_nodes,
            time.perf_counter() - self._started,
        )
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
        self._decisions.append(report)
        with self._egraph.transaction():
            write_decision(self._database, report, root.live)
            write_tree(self._database, decision, tree.nodes)
            self._write_checkpoint()
        self._root = TreeNode(
            0, None, 0, best.members, best.graph, best.history, is_whole=best.is_whole
        )

    def _batch(self, tree: Tree, most: int) -> list[TreeNode]:
        """Return new nodes of the tree, whose worlds are to be grown side by side."""
        batch: list[TreeNode] = []
        while len(batch) < most:
            node = tree.select()
            if node is None:
                break
            batch.append(node)
        return batch

    def _roll_out(self, tree: Tree, batch: list[TreeNode], times: int, decision: int) -> None:
        """Run rollouts from each new node, and update the tree."""
        for node in batch:
            for _ in range(times - 1):
                tree.begin(node)
        rollouts = self._simulator.run(batch, times, self._root, decision)
        costs_us = self._rewards.evaluate(rollouts)
        returns_ms = []
        for rollout, costs in zip(rollouts, costs_us, strict=True):
            rewards_ms = [max(a - b, 0.0) / 1000 for a, b in pairwise(costs)]
            for (rule, _), reward_ms in zip(rollout.steps, rewards_ms, strict=True):
                self._averages.note(rule, reward_ms)
            node = rollout.node
            assert node.parent is not None
            node.history = History(node.parent.history, *rollout.steps[0])
            node.reward_ms = rewards_ms[0]
            returns_ms.append(tree.end(node, rewards_ms[1:]))
            self._note_best(rollout, costs[-1])
        write_rollouts(self._database, decision, rollouts, costs_us, returns_ms)

    def _note_best(self, rollout: Rollout, cost_us: float) -> None:
        """Keep how the world of a rollout came about, if it is the cheapest."""
        if cost_us < self._best_us:
            self._best_us = cost_us
            history = rollout.node.history
            for rule, applications in rollout.steps[1:]:
                history = History(history, rule, applications)
            self._best = history

    def _original(self) -> Ints:
        """Return the e-nodes of the original graph, operands first."""
        rows = self._database.run("worlds/original")
        return np.array([enode for (enode,) in rows], np.int32)

    def _keep_worlds(self, reason: str) -> tuple[WorldReport, ...]:
        """Write the real world and the cheapest of any rollout; extract from both."""
        reports: list[WorldReport] = []
        kept = [("rollout", self._best), ("decision", self._root.history)]
        for kind, history in kept if self._best is not None else kept[1:]:
            number = len(reports) + 1
            with self._egraph.transaction():
                size = write_world(self._universe, number, self._original(), history)
                self._database.run("worlds/show", world=number)
            seed = self._chooser.choose(len(self._decisions), anew=True)
            reports.append(
                WorldReport(
                    number,
                    kind,
                    self._node_limit,
                    self._chooser.original_us,
                    seed.cost_us,
                    size,
                    self._egraph.e_nodes,
                    len(self._decisions),
                    reason,
                    time.perf_counter() - self._started,
                )
            )
            with self._egraph.transaction():
                self._database.run("worlds/keep_choice", world=number, enodes=list(seed.enodes))
                self._database.append("world", [reports[-1].row])
        return tuple(reports)

    def _write_checkpoint(self) -> None:
        """Write down what a run that is resumed after its end asks for; in memory, no process could."""
        if self._database.is_file:
            self._egraph.catalogue.flush(self._database)
            self._journal.write(self._database)
            write_checkpoint(
                self._egraph,
                Checkpoint(
                    self._universe.world.rules.first,
                    iteration=len(self._decisions),
                    original=self._original_nodes,
                    rule_seconds=[0.0] * len(self._universe.world.rules.rules),
                ),
            )

    def _finish(self, reason: str, worlds: tuple[WorldReport, ...]) -> Exploration:
        """Write down what is not written yet, and why it ended; return how it went."""
        database, matcher = self._database, self._universe.world.matcher
        with self._egraph.transaction():
            self._egraph.catalogue.flush(database)
            matcher.log_instances()
            write_applications(self._universe)
            self._journal.write(database)
            seconds = matcher.rule_seconds
            database.insert("rule_time", {"rule": list(seconds), "seconds": list(seconds.values())})
            self._egraph.set_stop_reason(reason)
            if database.is_file:
                matcher.instances.drop_tables()
        log = self._journal.log
        return Exploration(
            reason,
            len(self._decisions),
            rule_stats(database, self._universe.world.rules.first),
            tuple(log),
            sum(entry.statements for entry in log),
            time.perf_counter() - self._started,
            worlds,
            decisions=tuple(self._decisions),
        )
