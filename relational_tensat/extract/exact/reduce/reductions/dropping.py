"""Reductions that drop e-nodes which some optimum does without."""

from __future__ import annotations

import numpy as np

from relational_tensat.base.deadline import Check, unlimited
from relational_tensat.extract.exact.reduce.declaration import Stage, reduction
from relational_tensat.extract.exact.reduce.reduced import Mask, Reduced, keep
from relational_tensat.extract.greedy.bottom_up import DagDeriver
from relational_tensat.extract.index import (
    derivations,
    edge_owner,
)
from relational_tensat.extract.techniques import Gain

_RELATIVE_SLACK = 1e-9
"""Sums of costs that differ by less are taken as equal: they may differ by rounding only."""


@reduction(
    "underivable",
    "drop e-nodes without an acyclic derivation",
    stage=Stage.LINEAR,
    order=10,
    earns_on=Gain("inception_v3 k=2", "simplex_iterations"),
)
def drop_underivable(reduced: Reduced, check: Check = unlimited) -> Reduced:
    """Drop e-nodes that no acyclic choice can contain: a child has no acyclic derivation."""
    problem = reduced.problem
    derivable = np.zeros(problem.n_classes, dtype=np.bool_)
    derivable[list(derivations(problem))] = True
    return _without(reduced, ~derivable[problem.child_idx])


@reduction(
    "self-loops",
    "drop e-nodes that need their own class, or the root's",
    stage=Stage.LINEAR,
    order=20,
    earns_on=Gain("zones 300", "e_nodes"),
)
def drop_self_loops(reduced: Reduced, check: Check = unlimited) -> Reduced:
    """Drop e-nodes that need their own class, or the root's class (which needs them)."""
    problem = reduced.problem
    own_class = problem.node_class[edge_owner(problem.child_ptr)]
    return _without(reduced, (problem.child_idx == own_class) | (problem.child_idx == problem.root))


def _without(reduced: Reduced, edges: Mask) -> Reduced:
    """Drop the e-nodes that have one of some edges."""
    nodes = np.ones(reduced.problem.n_nodes, dtype=np.bool_)
    nodes[edge_owner(reduced.problem.child_ptr)[edges]] = False
    return keep(reduced, nodes)


@reduction(
    "dear",
    "drop e-nodes dearer than a whole derivation of their class",
    stage=Stage.COSTLY,
    order=40,
    earns_on=Gain("rings 100", "e_nodes"),
)
def drop_dear(reduced: Reduced, check: Check = unlimited) -> Reduced:
    """Drop e-nodes that cost more than a whole derivation of their class, itself acyclic."""
    problem = reduced.problem
    upper = DagDeriver(problem, check=check).derivation_costs(problem.cost_us)
    limit = upper[problem.node_class] * (1 + _RELATIVE_SLACK)
    return keep(reduced, problem.cost_us <= limit)
