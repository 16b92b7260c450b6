"""Rewards: what the cheapest graph of each world of a rollout costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from relational_tensat.base.watch import ShouldStop
from relational_tensat.explore.seed import PricingChooser
from relational_tensat.explore.strategies.mcts.tree import Rollout
from relational_tensat.explore.worlds.moves import CheapGraph, GraphPrices, moved, moves_of
from relational_tensat.explore.worlds.node_arrays import Ints
from relational_tensat.explore.worlds.node_costs import NodeCosts
from relational_tensat.explore.worlds.universe import Universe
from relational_tensat.explore.worlds.world_arrays import WorldArrays


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What the worlds of a rollout cost.

    Attributes:
        costs_us: after each step, first before its node's own.
        graph: the last world's.
    """

    costs_us: list[float]
    graph: CheapGraph


class Rewards:
    """Keeps the cheapest graphs of worlds by moves (``explore.worlds.moves``); says what worlds cost."""

    def __init__(
        self,
        universe: Universe,
        chooser: PricingChooser,
        extractor: str,
        should_stop: ShouldStop = lambda: False,
    ) -> None:
        """Begin with nothing.

        Args:
            extractor: what a world costs: as ``TreeOptions.extractor``.
            should_stop: asked where worlds are extracted from.
        """
        self._should_stop = should_stop
        self._universe = universe
        self._chooser = chooser
        self._extractor = extractor
        self._costs = NodeCosts(universe.egraph.catalogue, chooser.prices_us)
        #: What worlds cost by what they have; equalities that are found later make none dearer.
        self._known_us: dict[str, float] = {}
        self._written = 0
        self._version = -1
        self._graph_prices: GraphPrices

    def first(self, members: Ints) -> CheapGraph:
        """Return the graph of a world of the original graph's e-nodes."""
        prices = self._prices()
        owner = self._universe.arrays.owner
        choice = {int(owner[enode]): int(enode) for enode in np.sort(members)[::-1]}
        return CheapGraph(prices, members.tolist(), choice)

    def graph_of(
        self, members: Iterable[int], choice: Iterable[int], pairs: Iterable[tuple[int, int]] = ()
    ) -> CheapGraph:
        """Return the graph of a world: of each class, the e-node that it has or would have."""
        prices = self._prices()
        return CheapGraph(prices, members, {prices.owner[enode]: enode for enode in choice}, pairs)

    def know(self, costs_us: Mapping[str, float]) -> None:
        """Take over what another process knew of worlds."""
        self._known_us.update(costs_us)
        self._written = len(self._known_us)

    def new_costs(self) -> list[tuple[str, float]]:
        """Return what is known of worlds since this was last asked for."""
        new = list(self._known_us.items())[self._written :]
        self._written = len(self._known_us)
        return new

    def current(self, graph: CheapGraph) -> CheapGraph:
        """Return a graph with the e-nodes and classes of now."""
        prices = self._prices()
        return graph if graph.prices is prices else moved(graph, prices)

    def cost_us(self, graph: CheapGraph) -> float:
        """Return what the world of a graph costs: by the graph, or by the extractor."""
        if self._extractor == "moves":
            return graph.cost_us
        members = np.array(sorted(graph.members), np.int32)
        key = blake2b(members.tobytes(), digest_size=16).hexdigest()
        cost_us = self._known_us.get(key)
        if cost_us is None:
            universe = self._universe
            world = WorldArrays.of(members, universe.arrays, self._costs, universe.egraph.root)
            cost_us = self._chooser.world_cost_us(world, self._extractor, self._should_stop)
            self._known_us[key] = cost_us
        return cost_us

    def after(self, graph: CheapGraph, applications: Ints) -> CheapGraph:
        """Return the graph of a world once applications have come into it."""
        graph = graph.copy()
        graph.enter(moves_of(self._universe, applications).values())
        return graph

    def evaluate(self, rollouts: Iterable[Rollout]) -> list[Evaluation]:
        """Return what the worlds of each rollout cost; the graphs of the new nodes are set.

        Extraction from worlds ends where it is to stop: then there are fewer than rollouts.
        """
        rollouts = list(rollouts)
        fired = [places for rollout in rollouts for _, places in rollout.steps]
        places = np.unique(np.concatenate(fired)) if fired else np.zeros(0, np.int32)
        moves = moves_of(self._universe, places)
        evaluations: list[Evaluation] = []
        for rollout in rollouts:
            if self._extractor != "moves" and self._should_stop():
                break
            node = rollout.node
            assert node.parent is not None and node.parent.graph is not None
            node.parent.graph = self.current(node.parent.graph)
            graph = node.parent.graph.copy()
            costs_us = [self.cost_us(graph)]
            for step, (_, applications) in enumerate(rollout.steps):
                graph.enter(moves[place] for place in applications.tolist())
                costs_us.append(self.cost_us(graph))
                if step == 0:
                    node.graph = graph
                    graph = graph.copy()
            evaluations.append(Evaluation(costs_us, graph))
        return evaluations

    def _prices(self) -> GraphPrices:
        universe = self._universe
        if self._version != universe.version:
            self._version = universe.version
            self._costs.refresh(universe.arrays)
            self._graph_prices = GraphPrices(universe.arrays, self._costs, universe.egraph.root)
        return self._graph_prices
