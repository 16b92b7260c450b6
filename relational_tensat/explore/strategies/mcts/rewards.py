"""Rewards: the cost of the cheapest graph of each subgraph of a rollout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

import numpy as np

from relational_tensat.base.watch import ShouldStop
from relational_tensat.explore.members import PricingChooser
from relational_tensat.explore.strategies.mcts.tree import Rollout, TreeNode
from relational_tensat.explore.subgraphs.cheap_graph import CheapGraph, Move, moved, moves_of
from relational_tensat.explore.subgraphs.node_arrays import Ints
from relational_tensat.explore.subgraphs.node_costs import NodeCosts, SignatureCosts
from relational_tensat.explore.subgraphs.universe import Universe


class Rewards:
    """Keeps the cheapest graphs of subgraphs by moves (``CheapGraph``); says what subgraphs cost."""

    def __init__(
        self,
        universe: Universe,
        chooser: PricingChooser,
        extractor: str,
        signatures: SignatureCosts,
        should_stop: ShouldStop = lambda: False,
    ) -> None:
        """Begin with nothing.

        Args:
            extractor: the cost of a subgraph, as ``TreeOptions.extractor``.
            signatures: the costs of kernels, by the chooser.
            should_stop: asked where subgraphs are extracted from.
        """
        self._should_stop = should_stop
        self._universe = universe
        self._chooser = chooser
        self._extractor = extractor
        self.signatures = signatures
        #: The costs of subgraphs by their content; equalities that are found later make none costlier.
        self._known_us: dict[str, float] = {}
        self._version = -1
        self._node_costs: NodeCosts

    def first(self, members: Ints) -> CheapGraph:
        """Return the graph of a subgraph of the original graph's e-nodes."""
        prices = self._prices()
        owner = self._universe.arrays.owner
        choice = {int(owner[enode]): int(enode) for enode in np.sort(members)[::-1]}
        return CheapGraph(prices, members.tolist(), choice)

    def graph_of(
        self, members: Iterable[int], choice: Iterable[int], pairs: Iterable[tuple[int, int]] = ()
    ) -> CheapGraph:
        """Return the graph of a subgraph: of each class, the e-node that it has or would have."""
        prices = self._prices()
        return CheapGraph(prices, members, {prices.owner[enode]: enode for enode in choice}, pairs)

    def graph(self, node: TreeNode) -> CheapGraph:
        """Return the graph of a node whose subgraph is known, with the e-nodes and classes of now."""
        node.graph = self.current(node.known_graph)
        return node.graph

    def current(self, graph: CheapGraph) -> CheapGraph:
        """Return a graph with the e-nodes and classes of now."""
        prices = self._prices()
        return graph if graph.prices is prices else moved(graph, prices)

    def cost_us(self, graph: CheapGraph) -> float:
        """Return what the subgraph of a graph costs: by the graph, or by the extractor."""
        if self._extractor == "moves":
            return graph.cost_us
        members = np.array(sorted(graph.members), np.int32)
        key = blake2b(members.tobytes(), digest_size=16).hexdigest()
        cost_us = self._known_us.get(key)
        if cost_us is None:
            known = np.fromiter(graph.chosen().values(), np.int32)
            subgraph = graph.prices.subgraph(members, known)
            cost_us = self._chooser.subgraph_cost_us(subgraph, self._extractor, self._should_stop)
            self._known_us[key] = cost_us
        return cost_us

    def evaluate(self, rollouts: Sequence[Rollout]) -> None:
        """Set what the subgraphs of each rollout cost, and the graphs of these and of the new nodes.

        The common beginning of rollouts is evaluated once. Extraction from subgraphs ends
        where it is to stop: then some have no graph.
        """
        fired = [places for rollout in rollouts for _, places in rollout.steps]
        places = np.unique(np.concatenate(fired)) if fired else np.zeros(0, np.int32)
        moves = moves_of(self._universe, places)
        siblings: dict[int, list[Rollout]] = {}
        for rollout in rollouts:
            siblings.setdefault(rollout.node.above.number, []).append(rollout)
        for some in siblings.values():
            graph = self.graph(some[0].node.above)
            self._follow(some, moves, [self.cost_us(graph)], graph)

    def _follow(
        self,
        rollouts: list[Rollout],
        moves: Mapping[int, Move],
        costs_us: list[float],
        graph: CheapGraph,
    ) -> None:
        """Follow rollouts that are the same up to a subgraph.

        Args:
            costs_us: of the subgraphs up to there.
            graph: of this subgraph.
        """
        step = len(costs_us) - 1
        alike: dict[bytes, list[Rollout]] = {}
        ended = [rollout for rollout in rollouts if step == len(rollout.steps)]
        for rollout in ended:
            rollout.costs_us, rollout.graph = costs_us, graph
        for rollout in rollouts:
            if step < len(rollout.steps):
                alike.setdefault(rollout.steps[step][1].tobytes(), []).append(rollout)
        is_kept = step < 2 or bool(ended)  # by nodes, or by those that end
        for left, some in zip(range(len(alike) - 1, -1, -1), alike.values(), strict=True):
            if self._extractor != "moves" and self._should_stop():
                return
            after = graph.copy() if is_kept or left else graph
            after.enter(moves[place] for place in some[0].steps[step][1].tolist())
            if step == 0:
                for rollout in some:
                    rollout.node.graph = after
            self._follow(some, moves, [*costs_us, self.cost_us(after)], after)

    def _prices(self) -> NodeCosts:
        universe = self._universe
        if self._version != universe.version:
            self._version = universe.version
            self._node_costs = NodeCosts(universe.arrays, self.signatures, universe.egraph.root)
        return self._node_costs
