"""What the next decision of a search depends on, beside the universe."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from relational_tensat.explore.outcome import DecisionReport
from relational_tensat.explore.strategies.mcts.rewards import Rewards
from relational_tensat.explore.strategies.mcts.tree import History, TreeNode
from relational_tensat.explore.worlds.cheap_graph import CheapGraph
from relational_tensat.explore.worlds.node_arrays import Ints

#: The greatest probability that the rule of the best average is taken; as in the source.
_GREATEST_EPSILON = 0.75


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


@dataclass(slots=True)
class Best:
    """The cheapest world of any rollout.

    Attributes:
        cost_us: what it costs.
        history: how it came about; None: it is the original graph.
        graph: its cheapest graph.
    """

    cost_us: float
    history: History | None
    graph: CheapGraph


@dataclass(slots=True)
class SearchState:
    """Where a search is.

    Attributes:
        root: the real world.
        rng: draws all that is drawn.
        averages: what rules have saved in rollouts.
        decisions: those so far.
    """

    root: TreeNode
    best: Best
    rng: np.random.Generator
    averages: Averages
    decisions: list[DecisionReport] = field(default_factory=list)

    def refresh(self, rewards: Rewards) -> None:
        """Name e-nodes and classes as they are by now."""
        root, best = self.root, self.best
        graph = rewards.graph(root)
        root.graph = rewards.graph_of(root.members.tolist(), graph.choice.values(), graph.pairs)
        chosen = list(rewards.current(best.graph).chosen().values())
        best.graph = rewards.graph_of(chosen, chosen)


def first_state(original: Ints, rewards: Rewards, rules: int, seed: int) -> SearchState:
    """Return where a search begins.

    Args:
        original: the e-nodes of the original graph.
        rules: one more than the highest id of a rule.
        seed: of all that is drawn.
    """
    graph = rewards.first(original)
    root, best = TreeNode(0, None, 0, original, graph), Best(rewards.cost_us(graph), None, graph)
    return SearchState(root, best, np.random.default_rng(seed), Averages(rules))
