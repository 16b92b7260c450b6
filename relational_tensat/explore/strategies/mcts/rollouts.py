"""Rollouts: random rules in subgraphs side by side, from new nodes of a tree on, and how each is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import numpy as np

from relational_tensat.base.plan import Plan
from relational_tensat.base.watch import ShouldStop
from relational_tensat.explore.exploration_options import TreeOptions
from relational_tensat.explore.strategies.mcts.rewards import Rewards
from relational_tensat.explore.strategies.mcts.search_state import Best, SearchState, write_rollouts
from relational_tensat.explore.strategies.mcts.tree import History, Rollout, Tree, TreeNode
from relational_tensat.explore.subgraphs.firings import NO_RULE, Fired, Subgraphs
from relational_tensat.explore.subgraphs.node_arrays import Flags, Ints, Masks
from relational_tensat.explore.subgraphs.universe import Universe


def drawn(flags: Flags, rng: np.random.Generator) -> Ints:
    """Return, for each subgraph (column), a random rule among those of its flags; ``NO_RULE`` for none."""
    keys = rng.random(flags.shape) * flags
    return np.where(flags.any(axis=0), keys.argmax(axis=0), NO_RULE).astype(np.int32)


@dataclass(frozen=True, slots=True)
class Simulator:
    """Grows trees by rollouts.

    Attributes:
        node_limit: the most e-nodes of a subgraph.
        rewards: the costs of subgraphs.
        state: the real subgraph, the cheapest graph so far, the savings of rules.
        should_stop: asked before each step; if it says so, subgraphs stay as they are.
        looked: when the root was looked at, before its tree was grown: since then, all subgraphs of the
            tree that can be expanded have been.
    """

    universe: Universe
    options: TreeOptions
    node_limit: int
    rewards: Rewards
    state: SearchState
    should_stop: ShouldStop = lambda: False
    looked: dict[int, int] = field(default_factory=dict)

    def live_rules(self, members: Ints) -> Plan[frozenset[int]]:
        """Return the rules that change the root of a tree that is to be grown."""
        subgraphs = yield from self._subgraphs([members])
        self.looked.update(self.universe.match_versions)
        return frozenset(np.flatnonzero(subgraphs.live_rules()[:, 0]).tolist())

    def grow(self, tree: Tree, decision: int) -> Plan[int]:
        """Grow a tree by rollouts; return how many there were."""
        done, budget = 0, self.options.budget
        while done < budget and not self.should_stop():
            most = min(budget - done, self.options.at_once)
            batch = self._batch(tree, most)
            if not batch:
                break
            times = most // len(batch)
            done += yield from self._roll_out(tree, batch, times, decision)
        return done

    def _batch(self, tree: Tree, most: int) -> list[TreeNode]:
        """Return new nodes of the tree, whose subgraphs are to be grown side by side."""
        batch: list[TreeNode] = []
        while len(batch) < most:
            node = tree.select()
            if node is None:
                break
            batch.append(node)
        return batch

    def _roll_out(self, tree: Tree, batch: list[TreeNode], times: int, decision: int) -> Plan[int]:
        """Run rollouts from each new node, and update the tree; return how many were run."""
        for node in batch:
            for _ in range(times - 1):
                tree.begin(node)
        rollouts = yield from self.run(batch, times, decision)
        yield self.rewards.signatures.refresh
        self.rewards.evaluate(rollouts)
        evaluated = [rollout for rollout in rollouts if rollout.graph is not None]
        returns_ms = []
        for rollout in evaluated:
            node = rollout.node
            rewards_ms = [max(a - b, 0.0) / 1000 for a, b in pairwise(rollout.costs_us)]
            node.history = History(node.above.history, *rollout.steps[0])
            node.reward_ms = rewards_ms[0]
            returns_ms.append(tree.end(node, rewards_ms[1:]))
            self._note_best(rollout)
        database = self.universe.egraph.database
        yield partial(write_rollouts, database, decision, evaluated, returns_ms)
        return len(evaluated)

    def _note_best(self, rollout: Rollout) -> None:
        """Keep how the subgraph of a rollout came about, if it is the cheapest."""
        cost_us = rollout.costs_us[-1]
        if rollout.graph is not None and cost_us < self.state.best.cost_us:
            history = rollout.node.history
            for rule, applications in rollout.steps[1:]:
                history = History(history, rule, applications)
            self.state.best = Best(cost_us, history, rollout.graph)

    def run(self, nodes: list[TreeNode], times: int, iteration: int) -> Plan[list[Rollout]]:
        """Grow the subgraphs of new nodes of the tree, and simulate on from each.

        Args:
            times: how many rollouts each node has.
            iteration: new e-nodes are stored with this index.
        """
        rollouts = [Rollout(node, []) for node in nodes for _ in range(times)]
        became = self.universe.arrays.became
        members = [became[rollout.node.above.members] for rollout in rollouts]
        subgraphs = yield from self._subgraphs(members, self.looked)
        rules = np.array([rollout.node.rule for rollout in rollouts], np.int32)
        fired = yield from _step(subgraphs, rules, rollouts, iteration)
        live = subgraphs.live_rules()
        for subgraph, rollout in enumerate(rollouts):
            node = rollout.node
            node.members = subgraphs.masks.members(subgraph)
            node.live = frozenset(np.flatnonzero(live[:, subgraph]).tolist())
            node.is_whole = not fired.limited[subgraph]
            node.is_saturated = not fired.changed[subgraph]
        yield from self._simulate(subgraphs, rollouts, iteration)
        for rollout, size in zip(rollouts, subgraphs.masks.sizes().tolist(), strict=True):
            rollout.e_nodes = size
        for node in nodes:
            node.members = np.unique(self.universe.arrays.became[node.members])
        return rollouts

    def _subgraphs(
        self, members: Sequence[Ints], looked: dict[int, int] | None = None
    ) -> Plan[Subgraphs]:
        masks = Masks(members, self.universe.arrays.size)
        subgraphs = Subgraphs(self.universe, masks, self.node_limit, looked)
        yield from subgraphs.look()
        return subgraphs

    def _simulate(
        self, subgraphs: Subgraphs, rollouts: list[Rollout], iteration: int
    ) -> Plan[None]:
        """Apply rules in the subgraphs of rollouts that have begun, until nothing changes them."""
        for _ in range(self.options.steps):
            if self.should_stop():
                return
            rules = self._next_rules(subgraphs)
            subgraphs.is_done |= rules == NO_RULE
            if subgraphs.is_done.all():
                return
            yield from _step(subgraphs, rules, rollouts, iteration)

    def _next_rules(self, subgraphs: Subgraphs) -> Ints:
        """Return the rule that each subgraph applies next by a policy; ``NO_RULE`` if none changes it."""
        live = subgraphs.live_rules()
        live[:, subgraphs.is_done] = False
        if self.options.policy == "uniform":
            every = np.zeros_like(live)
            every[self.universe.subgraph.rules.first :] = live.any(axis=0)
            return drawn(every, self.state.rng)
        return drawn(live, self.state.rng)


def _step(
    subgraphs: Subgraphs, rules: Ints, rollouts: list[Rollout], iteration: int
) -> Plan[Fired]:
    """Let a rule fire in the subgraph of each rollout."""
    fired = yield from subgraphs.fire(rules, iteration)
    for rollout, rule, applications in zip(
        rollouts, rules.tolist(), fired.applications, strict=True
    ):
        if rule != NO_RULE:
            rollout.steps.append((rule, applications))
    subgraphs.is_done |= fired.limited
    yield from subgraphs.look()
    return fired
