"""Rewards: what the cheapest graph of each world of a rollout costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

import numpy as np

from relational_tensat.base.records import record
from relational_tensat.base.watch import ShouldStop
from relational_tensat.explore.seed import PricingChooser
from relational_tensat.explore.strategies.mcts.tree import Rollout
from relational_tensat.explore.worlds.cheap_graph import CheapGraph, Move, moved, moves_of
from relational_tensat.explore.worlds.node_arrays import Ints
from relational_tensat.explore.worlds.node_costs import NodeCosts, SignatureCosts
from relational_tensat.explore.worlds.universe import Universe


@record
class Evaluation:
    """What the worlds of a rollout cost.

    Attributes:
        costs_us: after each step, first before its node's own.
        graph: the last world's.
    """

    costs_us: list[float]
    graph: CheapGraph


class Rewards:
    """Keeps the cheapest graphs of worlds by moves (``CheapGraph``); says what worlds cost."""

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
        self._signatures = SignatureCosts(universe.egraph.catalogue, chooser.prices_us)
        #: What worlds cost by what they have; equalities that are found later make none dearer.
        self._known_us: dict[str, float] = {}
        self._written = 0
        self._version = -1
        self._node_costs: NodeCosts
        self._moves: dict[int, Move] = {}
        self._moves_version = -1

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
            known = np.fromiter(graph.chosen().values(), np.int32)
            world = graph.prices.world(members, known)
            cost_us = self._chooser.world_cost_us(world, self._extractor, self._should_stop)
            self._known_us[key] = cost_us
        return cost_us

    def after(self, graph: CheapGraph, applications: Ints) -> CheapGraph:
        """Return the graph of a world once applications have come into it."""
        graph = graph.copy()
        graph.enter(moves_of(self._universe, applications).values())
        return graph

    def evaluate(self, rollouts: Sequence[Rollout]) -> list[Evaluation | None]:
        """Return what the worlds of each rollout cost; the graphs of the new nodes are set.

        What rollouts have in common from the beginning is evaluated once. Extraction from worlds ends where
        it is to stop: then some have None.
        """
        fired = [places for rollout in rollouts for _, places in rollout.steps]
        places = np.unique(np.concatenate(fired)) if fired else np.zeros(0, np.int32)
        courses = _Courses(self, rollouts, self._moves_of(places))
        siblings: dict[int, list[int]] = {}
        for index, rollout in enumerate(rollouts):
            siblings.setdefault(id(rollout.node.parent), []).append(index)
        for indices in siblings.values():
            parent = rollouts[indices[0]].node.parent
            assert parent is not None and parent.graph is not None
            parent.graph = self.current(parent.graph)
            courses.follow(Evaluation([self.cost_us(parent.graph)], parent.graph), indices)
        return courses.evaluations

    @property
    def should_stop(self) -> bool:
        """Whether no other world is to be extracted from."""
        return self._extractor != "moves" and self._should_stop()

    def _moves_of(self, places: Ints) -> Mapping[int, Move]:
        """Return what applications do to a graph, these and all others asked for since e-nodes changed."""
        if self._moves_version != self._universe.version:
            self._moves_version = self._universe.version
            self._moves.clear()
        new = [place for place in places.tolist() if place not in self._moves]
        self._moves.update(moves_of(self._universe, np.array(new, np.int32)))
        return self._moves

    def _prices(self) -> NodeCosts:
        universe = self._universe
        if self._version != universe.version:
            self._version = universe.version
            self._node_costs = NodeCosts(universe.arrays, self._signatures, universe.egraph.root)
        return self._node_costs


class _Courses:
    """The steps of rollouts, of which several may begin alike.

    Attributes:
        evaluations: by rollout, once it has been followed to its end.
    """

    def __init__(
        self, rewards: Rewards, rollouts: Sequence[Rollout], moves: Mapping[int, Move]
    ) -> None:
        self.evaluations: list[Evaluation | None] = [None] * len(rollouts)
        self._rewards = rewards
        self._rollouts = rollouts
        self._moves = moves

    def follow(self, before: Evaluation, indices: list[int]) -> None:
        """Follow rollouts that are the same up to a world, and set what is found."""
        step = len(before.costs_us) - 1
        alike: dict[bytes, list[int]] = {}
        for index in indices:
            steps = self._rollouts[index].steps
            if step == len(steps):
                self.evaluations[index] = before
            else:
                alike.setdefault(steps[step][1].tobytes(), []).append(index)
        is_kept = step < 2 or sum(map(len, alike.values())) < len(
            indices
        )  # by nodes, or by who ends
        for left, some in zip(range(len(alike) - 1, -1, -1), alike.values(), strict=True):
            if self._rewards.should_stop:
                return
            graph = before.graph.copy() if is_kept or left else before.graph
            graph.enter(self._moves[place] for place in self._applications(some[0], step))
            after = Evaluation([*before.costs_us, self._rewards.cost_us(graph)], graph)
            if step == 0:
                for index in some:
                    self._rollouts[index].node.graph = graph
            self.follow(after, some)

    def _applications(self, index: int, step: int) -> list[int]:
        places: list[int] = self._rollouts[index].steps[step][1].tolist()
        return places
