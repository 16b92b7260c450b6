"""The policy ``look-ahead``: of some rules drawn at random, a world applies the one that saves most."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relational_tensat.explore.strategies.mcts.policies import drawn
from relational_tensat.explore.strategies.mcts.rewards import Rewards
from relational_tensat.explore.worlds.cheap_graph import CheapGraph
from relational_tensat.explore.worlds.firing import NO_RULE, Worlds
from relational_tensat.explore.worlds.masks import Masks
from relational_tensat.explore.worlds.node_arrays import Ints

#: Rules that are tried for each step; as in the source.
_TRIED = 5


class LookAhead:
    """Keeps the cheapest graphs of worlds while they are simulated, and tries rules on copies of these."""

    def __init__(
        self, rewards: Rewards, graphs: list[CheapGraph], rng: np.random.Generator
    ) -> None:
        """Begin with the graphs of the worlds."""
        self._rewards = rewards
        self._graphs = graphs
        self._rng = rng

    def note(self, fired: tuple[Ints, ...]) -> None:
        """Note which applications came into the worlds."""
        self._graphs = self._after(fired)

    def next_rules(self, worlds: Worlds, iteration: int) -> Ints:
        """Return the rule that each world applies next; ``NO_RULE`` where none changes it.

        Args:
            iteration: what is built is stored with this index.
        """
        live = worlds.live_rules()
        live[:, worlds.is_done] = False
        best = np.full(worlds.masks.worlds, NO_RULE, np.int32)
        best_us = np.full(worlds.masks.worlds, np.inf)
        for _ in range(_TRIED):
            rules = drawn(live, self._rng)
            costs_us = self._costs(worlds, rules, iteration)
            is_better = (rules != NO_RULE) & (costs_us < best_us)
            best[is_better], best_us[is_better] = rules[is_better], costs_us[is_better]
        return best

    def _costs(self, worlds: Worlds, rules: Ints, iteration: int) -> NDArray[np.float64]:
        """Return what the worlds would cost after these rules, in µs; what is done stays as it is."""
        members = [worlds.masks.members(world) for world in range(worlds.masks.worlds)]
        masks = Masks(members, worlds.universe.arrays.size)
        trial = Worlds(worlds.universe, masks, worlds.node_limit)
        fired = trial.fire(rules, iteration)
        worlds.masks.follow(worlds.universe.arrays.became)
        return np.array([graph.cost_us for graph in self._after(fired.applications)])

    def _after(self, fired: tuple[Ints, ...]) -> list[CheapGraph]:
        self._graphs = [self._rewards.current(graph) for graph in self._graphs]
        return [
            self._rewards.after(graph, applications)
            for graph, applications in zip(self._graphs, fired, strict=True)
        ]
