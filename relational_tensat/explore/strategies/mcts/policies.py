"""Rollout policies: which rule a simulation applies next, in all worlds at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relational_tensat.explore.strategies.mcts.tree import TreeNode
from relational_tensat.explore.worlds.firing import NO_RULE, Worlds
from relational_tensat.explore.worlds.masks import Flags
from relational_tensat.explore.worlds.node_arrays import Ints

#: ``average``: the greatest probability that the rule of the best average is taken; as in the source.
_GREATEST_EPSILON = 0.75

#: ``near``: the probability that a rule near the cheapest graph is taken where there is one.
_NEAR = 0.75


class Averages:
    """The average reward of each rule in the simulations so far.

    Attributes:
        total_ms, count: by rule, the sum of its rewards, and how many there were.
    """

    def __init__(self, rules: int) -> None:
        self.total_ms: NDArray[np.float64] = np.zeros(rules)
        self.count: NDArray[np.int64] = np.zeros(rules, np.int64)

    def note(self, rule: int, reward_ms: float) -> None:
        """Note what a rule saved."""
        self.total_ms[rule] += reward_ms
        self.count[rule] += 1

    @property
    def mean_ms(self) -> NDArray[np.float64]:
        """By rule; 0 for those that were not tried."""
        return self.total_ms / np.maximum(self.count, 1)

    @property
    def epsilon(self) -> float:
        """The probability that the rule of the best average is taken: it grows with what is known."""
        tried = int(self.count.sum())
        return _GREATEST_EPSILON * tried / (tried + len(self.count))


def drawn(flags: Flags, rng: np.random.Generator) -> Ints:
    """Return, for each world (column), a rule at random among those of its flags; ``NO_RULE`` for none."""
    keys = rng.random(flags.shape) * flags
    return np.where(flags.any(axis=0), keys.argmax(axis=0), NO_RULE).astype(np.int32)


def _near(worlds: Worlds, root: TreeNode) -> Flags:
    """Return, by id, which e-nodes are in the root's cheapest graph or not in the root at all."""
    assert root.graph is not None  # it is looked up before its tree grows
    arrays = worlds.universe.arrays
    near = np.ones(arrays.size, np.bool_)
    near[arrays.became[root.members]] = False
    near[arrays.became[list(root.graph.chosen().values())]] = True
    near[0] = True
    return near


def next_rules(
    policy: str,
    worlds: Worlds,
    averages: Averages,
    root: TreeNode,
    rng: np.random.Generator,
) -> Ints:
    """Return the rule that each world applies next; ``NO_RULE`` where none changes it.

    Args:
        policy: as ``TreeOptions.policy``, but ``look-ahead``.
        root: of the tree.
    """
    live = worlds.live_rules()
    live[:, worlds.is_done] = False
    if policy == "uniform":
        every = np.zeros_like(live)
        rules = worlds.universe.world.rules
        every[rules.first :] = live.any(axis=0)
        return drawn(every, rng)
    rules_drawn = drawn(live, rng)
    if policy == "average":
        best = (averages.mean_ms[:, None] * live).argmax(axis=0).astype(np.int32)
        takes = (rng.random(len(best)) < averages.epsilon) & live[best, np.arange(len(best))]
        return np.where(takes, best, rules_drawn)
    if policy == "near":
        close = worlds.live_rules(_near(worlds, root))
        close[:, worlds.is_done] = False
        nearer = drawn(close, rng)
        takes = (rng.random(len(nearer)) < _NEAR) & (nearer != NO_RULE)
        return np.where(takes, nearer, rules_drawn)
    return rules_drawn
