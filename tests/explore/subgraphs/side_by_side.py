"""Subgraphs side by side, grown by random rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from relational_tensat.base.plan import carried_out
from relational_tensat.egraph import EGraph
from relational_tensat.egraph.schema import create_subgraphs
from relational_tensat.explore import ExplorationOptions
from relational_tensat.explore.strategies.mcts.rollouts import drawn
from relational_tensat.explore.subgraph import begin_subgraph
from relational_tensat.explore.subgraphs.firings import NO_RULE, Fired, Subgraphs
from relational_tensat.explore.subgraphs.node_arrays import Ints, Masks
from relational_tensat.explore.subgraphs.universe import Universe
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph


def universe_of(
    graph: Graph, rules: Sequence[Rule], options: ExplorationOptions | None = None
) -> Universe:
    """Return a universe in which nothing is built."""
    egraph = EGraph.create(graph)
    create_subgraphs(egraph.database)
    universe = Universe(begin_subgraph(egraph, rules, options or ExplorationOptions()))
    universe.find()
    return universe


def original(universe: Universe) -> Ints:
    """Return the e-nodes of the original graph, operands first."""
    return universe.original()


def subgraphs_of(universe: Universe, count: int, node_limit: int) -> Subgraphs:
    """Return so many subgraphs of the original graph."""
    return looked_at(
        universe, Masks([original(universe)] * count, universe.arrays.size), node_limit
    )


def looked_at(universe: Universe, masks: Masks, node_limit: int) -> Subgraphs:
    """Return subgraphs of which it is known what could change them."""
    subgraphs = Subgraphs(universe, masks, node_limit)
    carried_out(subgraphs.look)()
    return subgraphs


def fire(subgraphs: Subgraphs, rules: Ints, iteration: int) -> Fired:
    """Let a rule fire in each subgraph, and return what did."""
    return carried_out(subgraphs.fire)(rules, iteration)


def random_steps(subgraphs: Subgraphs, steps: int, seed: int) -> Iterator[tuple[Ints, Fired]]:
    """Let random live rules fire in all subgraphs; yield the rules of each step and what fired."""
    rng = np.random.default_rng(seed)
    for step in range(1, steps + 1):
        live = subgraphs.live_rules()
        live[:, subgraphs.is_done] = False
        rules = drawn(live, rng)
        fired = fire(subgraphs, rules, step)
        subgraphs.is_done |= fired.limited | (rules == NO_RULE)
        carried_out(subgraphs.look)()
        yield rules, fired
