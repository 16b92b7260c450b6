"""Simulation: the rollouts of a batch, as worlds side by side."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from relational_tensat.base.watch import ShouldStop
from relational_tensat.explore.strategies.mcts.look_ahead import LookAhead
from relational_tensat.explore.strategies.mcts.policies import Averages, next_rules
from relational_tensat.explore.strategies.mcts.rewards import Rewards
from relational_tensat.explore.strategies.mcts.tree import Rollout, TreeNode
from relational_tensat.explore.strategies.mcts.tree_options import TreeOptions
from relational_tensat.explore.worlds.cheap_graph import CheapGraph
from relational_tensat.explore.worlds.firing import NO_RULE, Fired, Worlds
from relational_tensat.explore.worlds.masks import Masks
from relational_tensat.explore.worlds.node_arrays import Ints
from relational_tensat.explore.worlds.universe import Universe


@dataclass(frozen=True, slots=True)
class Simulator:
    """Runs rollouts.

    Attributes:
        node_limit: the most e-nodes of a world.
        rng: draws the rules.
        averages: what each rule has saved so far.
        rewards: what worlds cost.
        should_stop: asked before each step; if it says so, worlds stay as they are.
        looked: when the root was looked at, before its tree was grown: since then, all worlds of the tree
            that can be expanded have been.
    """

    universe: Universe
    options: TreeOptions
    node_limit: int
    rng: np.random.Generator
    averages: Averages
    rewards: Rewards
    should_stop: ShouldStop = lambda: False
    looked: dict[int, int] = field(default_factory=dict)

    def live_rules(self, members: Ints) -> frozenset[int]:
        """Return the rules that change the root of a tree that is to be grown."""
        worlds = Worlds(self.universe, Masks([members], self.universe.arrays.size), self.node_limit)
        self.looked.update(self.universe.match_versions)
        return frozenset(np.flatnonzero(worlds.live_rules()[:, 0]).tolist())

    def run(
        self, nodes: list[TreeNode], times: int, root: TreeNode, iteration: int
    ) -> list[Rollout]:
        """Grow the worlds of new nodes of the tree, and simulate on from each.

        Args:
            times: how many rollouts each node has.
            root: of the tree.
            iteration: what is built is stored with this index.
        """
        began = [node for node in nodes for _ in range(times)]
        members = [self.universe.arrays.became[_parent(node).members] for node in began]
        shared: dict[bytes, Ints] = {}  # equal worlds are given as one list
        members = [shared.setdefault(enodes.tobytes(), enodes) for enodes in members]
        masks = Masks(members, self.universe.arrays.size)
        worlds = Worlds(self.universe, masks, self.node_limit, self.looked)
        rules = np.array([node.rule for node in began], np.int32)
        rollouts = [Rollout(node, []) for node in began]
        fired = self._step(worlds, rules, rollouts, iteration)
        live = worlds.live_rules()
        for world, node in enumerate(began):
            node.members = masks.members(world)
            node.live = frozenset(np.flatnonzero(live[:, world]).tolist())
            node.is_whole = not fired.limited[world]
            node.is_saturated = not fired.changed[world]
        self._simulate(worlds, rollouts, root, iteration)
        for rollout, size in zip(rollouts, masks.sizes().tolist(), strict=True):
            rollout.e_nodes = size
        for node in nodes:
            node.members = np.unique(self.universe.arrays.became[node.members])
        return rollouts

    def _simulate(
        self, worlds: Worlds, rollouts: list[Rollout], root: TreeNode, iteration: int
    ) -> None:
        """Apply rules in the worlds of rollouts that have begun, until nothing changes them."""
        look_ahead = None
        if self.options.policy == "look-ahead":
            look_ahead = LookAhead(self.rewards, self._graphs(rollouts), self.rng)
            look_ahead.note(tuple(rollout.steps[0][1] for rollout in rollouts))
        for _ in range(self.options.steps):
            if self.should_stop():
                return
            if look_ahead is not None:
                rules = look_ahead.next_rules(worlds, iteration)
            else:
                rules = next_rules(self.options.policy, worlds, self.averages, root, self.rng)
            worlds.is_done |= rules == NO_RULE
            if worlds.is_done.all():
                return
            fired = self._step(worlds, rules, rollouts, iteration)
            if look_ahead is not None:
                look_ahead.note(fired.applications)

    def _graphs(self, rollouts: list[Rollout]) -> list[CheapGraph]:
        """Return the cheapest graphs of the worlds that rollouts begin in."""
        graphs = []
        for parent in (_parent(rollout.node) for rollout in rollouts):
            assert parent.graph is not None  # nothing begins in a world that is not known
            parent.graph = self.rewards.current(parent.graph)
            graphs.append(parent.graph)
        return graphs

    def _step(self, worlds: Worlds, rules: Ints, rollouts: list[Rollout], iteration: int) -> Fired:
        fired = worlds.fire(rules, iteration)
        for rollout, rule, applications in zip(
            rollouts, rules.tolist(), fired.applications, strict=True
        ):
            if rule != NO_RULE:
                rollout.steps.append((rule, applications))
        worlds.is_done |= fired.limited
        worlds.look()
        return fired


def _parent(node: TreeNode) -> TreeNode:
    assert node.parent is not None  # the root is no node that a rollout begins
    return node.parent
