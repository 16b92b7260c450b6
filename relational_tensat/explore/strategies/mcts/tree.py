"""The search tree: selection, expansion and update (the paper's section 4.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from relational_tensat.explore.exploration_options import TreeOptions
from relational_tensat.explore.subgraphs.cheap_graph import CheapGraph
from relational_tensat.explore.subgraphs.node_arrays import Ints


@dataclass(slots=True, eq=False)
class History:
    """How a subgraph came about.

    Attributes:
        before: of the subgraph that it was grown from; None for the original graph.
        rule: the rule that was applied to that.
        applications: those that fired, in order.
    """

    before: History | None
    rule: int
    applications: Ints


@dataclass(slots=True, eq=False)
class TreeNode:
    """A subgraph in the tree.

    Attributes:
        number: from 0 on, within a decision.
        parent: None for the root.
        rule: the one that led to it.
        members: its e-nodes, by the ids of the time when they were last looked up.
        graph: its cheapest graph, for the universe of that time.
        history: how it came about.
        live: the rules that change it.
        is_whole: whether no limit left something out; nothing can be added to other subgraphs.
        is_saturated: whether its rule changed nothing.
        reward_ms: its rule's saving.
        value_ms, visits: sums over the rollouts through it.
        under_way: rollouts through it that have not ended.
        children: by rule; those under way included.
    """

    number: int
    parent: TreeNode | None
    rule: int
    members: Ints
    graph: CheapGraph | None = None
    history: History | None = None
    live: frozenset[int] = frozenset()
    is_whole: bool = True
    is_saturated: bool = False
    reward_ms: float = 0.0
    value_ms: float = 0.0
    visits: int = 0
    under_way: int = 0
    children: dict[int, TreeNode] = field(default_factory=dict)

    @property
    def above(self) -> TreeNode:
        """The node that it was begun from: it is not the root."""
        assert self.parent is not None
        return self.parent

    @property
    def known_graph(self) -> CheapGraph:
        """Its cheapest graph: its subgraph is known."""
        assert self.graph is not None
        return self.graph

    @property
    def cost_us(self) -> float:
        """The cost of its cheapest graph."""
        return math.inf if self.graph is None else self.graph.cost_us

    @property
    def mean_ms(self) -> float:
        """The mean of the rollouts through it."""
        return self.value_ms / self.visits if self.visits else -math.inf

    @property
    def unvisited(self) -> list[int]:
        """The rules that can lead to other subgraphs and were not tried."""
        return sorted(self.live.difference(self.children)) if self.is_whole else []

    @property
    def open_children(self) -> list[TreeNode]:
        """The children that more can be learned from, and whose subgraphs are known."""
        return [c for c in self.children.values() if c.graph is not None and c.can_grow]

    @property
    def can_grow(self) -> bool:
        """Whether a rollout through it may end where none has been."""
        if self.is_saturated or not self.is_whole:
            return False
        return bool(self.unvisited) or any(
            child.graph is None or child.can_grow for child in self.children.values()
        )


@dataclass(slots=True, eq=False)
class Rollout:
    """A rollout: a new node of the tree, and a simulation from there.

    Attributes:
        steps: the rule of each step and the applications that fired; first the node's own.
        e_nodes: of the subgraph in the end.
        costs_us: the costs of its subgraphs after each step, first before its node's own.
        graph: the last subgraph's; None: it is not evaluated.
    """

    node: TreeNode
    steps: list[tuple[int, Ints]]
    e_nodes: int = 0
    costs_us: list[float] = field(default_factory=list)
    graph: CheapGraph | None = None


class Tree:
    """The tree of a decision.

    Attributes:
        root: the real subgraph.
        nodes: all of them, by number.
    """

    def __init__(self, root: TreeNode, options: TreeOptions, rng: np.random.Generator) -> None:
        self.root = root
        self.nodes = [root]
        self._options = options
        self._rng = rng

    def select(self) -> TreeNode | None:
        """Go down to a node that can be expanded, and begin a child by a rule at random.

        Returns:
            The child, whose subgraph is to be grown; None if that has to wait for those under way.
        """
        node = self.root
        while True:
            unvisited, below = node.unvisited, node.open_children
            if not unvisited and not below:
                return None
            if unvisited and (not below or self._expands(node)):
                return self._begin_child(node, int(self._rng.choice(unvisited)))
            node = max(below, key=lambda child: self._ucb(child, node))

    def begin(self, node: TreeNode) -> None:
        """Note that a rollout from a node is under way."""
        above: TreeNode | None = node
        while above is not None:
            above.under_way += 1
            above = above.parent

    def end(self, node: TreeNode, rewards_ms: list[float]) -> float:
        """Update a node and those above it with the rewards of a simulation; return the node's return."""
        discount = self._options.discount if self._options.variant == "source" else 1.0
        total = 0.0
        for reward in reversed(rewards_ms):
            total = reward + discount * total
        total = first = node.reward_ms + discount * total
        above: TreeNode | None = node
        while above is not None:
            above.under_way -= 1
            above.visits += 1
            above.value_ms += total
            above = above.parent
            total = discount * total + (above.reward_ms if above is not None else 0.0)
        return first

    def best_child(self) -> TreeNode | None:
        """Return the child of the root with the highest mean of those that change it."""
        children = [c for c in self.root.children.values() if c.visits and not c.is_saturated]
        return max(children, key=lambda child: child.mean_ms, default=None)

    def _expands(self, node: TreeNode) -> bool:
        if node is self.root and self._options.variant == "source":
            return True
        return bool(self._rng.random() < self._options.expansion)

    def _begin_child(self, node: TreeNode, rule: int) -> TreeNode:
        child = TreeNode(len(self.nodes), node, rule, node.members)
        self.nodes.append(child)
        node.children[rule] = child
        self.begin(child)
        return child

    def _ucb(self, child: TreeNode, parent: TreeNode) -> float:
        """Return UCB1; rollouts under way count as visits without reward (virtual loss)."""
        visits = child.visits + child.under_way
        total = parent.visits + parent.under_way
        if not visits:
            return math.inf
        bonus = self._options.exploration_constant * math.sqrt(math.log(max(total, 1)) / visits)
        return child.value_ms / visits + bonus
