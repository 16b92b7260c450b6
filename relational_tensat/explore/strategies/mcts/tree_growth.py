"""A tree grows: rollouts from new nodes, side by side, and what they found."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from relational_tensat.base.watch import ShouldStop
from relational_tensat.egraph.database import Database
from relational_tensat.explore.strategies.mcts.keeping import write_rollouts
from relational_tensat.explore.strategies.mcts.rewards import Rewards
from relational_tensat.explore.strategies.mcts.rollouts import Simulator
from relational_tensat.explore.strategies.mcts.search_state import Best, SearchState
from relational_tensat.explore.strategies.mcts.tree import History, Rollout, Tree, TreeNode
from relational_tensat.explore.strategies.mcts.tree_options import TreeOptions


@dataclass(frozen=True, slots=True)
class TreeGrower:
    """Grows the tree of a decision.

    Attributes:
        state: the real world, the cheapest graph so far, what rules have saved.
        database: has all rollouts.
    """

    options: TreeOptions
    simulator: Simulator
    rewards: Rewards
    state: SearchState
    database: Database
    should_stop: ShouldStop

    def grow(self, tree: Tree, decision: int) -> int:
        """Grow a tree by rollouts; return how many there were."""
        done, budget = 0, self.options.budget
        while done < budget and not self.should_stop():
            most = min(budget - done, self.options.at_once)
            batch = self._batch(tree, most)
            if not batch:
                break
            times = most // len(batch)
            done += self._roll_out(tree, batch, times, decision)
        return done

    def _batch(self, tree: Tree, most: int) -> list[TreeNode]:
        """Return new nodes of the tree, whose worlds are to be grown side by side."""
        batch: list[TreeNode] = []
        while len(batch) < most:
            node = tree.select()
            if node is None:
                break
            batch.append(node)
        return batch

    def _roll_out(self, tree: Tree, batch: list[TreeNode], times: int, decision: int) -> int:
        """Run rollouts from each new node, and update the tree; return how many were run."""
        for node in batch:
            for _ in range(times - 1):
                tree.begin(node)
        rollouts = self.simulator.run(batch, times, self.state.root, decision)
        self.rewards.evaluate(rollouts)
        evaluated = [rollout for rollout in rollouts if rollout.graph is not None]
        returns_ms = []
        for rollout in evaluated:
            node = rollout.node
            rewards_ms = [max(a - b, 0.0) / 1000 for a, b in pairwise(rollout.costs_us)]
            for (rule, _), reward_ms in zip(rollout.steps, rewards_ms, strict=True):
                self.state.averages.note(rule, reward_ms)
            node.history = History(node.above.history, *rollout.steps[0])
            node.reward_ms = rewards_ms[0]
            returns_ms.append(tree.end(node, rewards_ms[1:]))
            self._note_best(rollout)
        write_rollouts(self.database, decision, evaluated, returns_ms)
        return len(evaluated)

    def _note_best(self, rollout: Rollout) -> None:
        """Keep how the world of a rollout came about, if it is the cheapest."""
        cost_us = rollout.costs_us[-1]
        if rollout.graph is not None and cost_us < self.state.best.cost_us:
            history = rollout.node.history
            for rule, applications in rollout.steps[1:]:
                history = History(history, rule, applications)
            self.state.best = Best(cost_us, history, rollout.graph)
