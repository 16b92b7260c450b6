"""Subgraphs side by side, grown by random rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from relational_tensat.egraph import EGraph
from relational_tensat.egraph.schema import create_subgraphs
from relational_tensat.explore import ExplorationOptions
from relational_tensat.explore.strategies.mcts.rollouts import drawn
from relational_tensat.explore.subgraphs.firings import NO_RULE, Fired, Subgraphs
from relational_tensat.explore.subgraphs.node_arrays import Ints, Masks
from relational_tensat.explore.subgraphs.universe import Universe, begin_universe
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph


def universe_of(
    graph: Graph, rules: Sequence[Rule], options: ExplorationOptions | None = None
) -> Universe:
    """Return a universe in which nothing is built."""
    egraph = EGraph.create(graph)
    create_subgraphs(egraph.database)
    return begin_universe(egraph, rules, options or ExplorationOptions())


def original(universe: Universe) -> Ints:
    """Return the e-nodes of the original graph, operands first."""
    return universe.original()


def subgraphs_of(universe: Universe, count: int, node_limit: int) -> Subgraphs:
    """Return so many subgraphs of the original graph."""
    return Subgraphs(
        universe, Masks([original(universe)] * count, universe.arrays.size), node_limit
    )


def random_steps(subgraphs: Subgraphs, steps: int, seed: int) -> Iterator[tuple[Ints, Fired]]:
    """Let random live rules fire in all subgraphs; yield the rules of each step and what fired."""
    rng = np.random.default_rng(seed)
    for step in range(1, steps + 1):
        live = subgraphs.live_rules()
        live[:, subgraphs.is_done] = False
        rules = drawn(live, rng)
        fired = subgraphs.fire(rules, step)
        subgraphs.is_done |= fired.limited | (rules == NO_RULE)
        subgraphs.look()
        yield rules, fired
