"""Reductions that drop e-nodes which some optimum does without, also by what every derivation contains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relational_tensat.base.deadline import ASKED_EVERY, Check, unlimited
from relational_tensat.extract.exact.reduce.declaration import ReductionStage, reduction
from relational_tensat.extract.exact.reduce.required_classes import (
    dominators,
    members_of,
    node_needs,
    required_classes,
)
from relational_tensat.extract.exact.reduce.smaller_problem import Mask, Reduced, keep
from relational_tensat.extract.greedy.bottom_up import DagDeriver
from relational_tensat.extract.index import (
    Adjacency,
    children_by_node,
    derivations,
    edge_owner,
    nodes_by_class,
)
from relational_tensat.extract.techniques import TechniqueGain


@reduction(
    "required",
    "drop e-nodes that need a class which needs theirs, or that another dominates given what is required",
    stage=ReductionStage.COSTLY,
    order=50,
    earns_on=TechniqueGain("nasrnn k=1, unfiltered", "e_nodes"),
)
def drop_by_required(reduced: Reduced, check: Check = unlimited) -> Reduced:
    """Drop e-nodes that must close a cycle, and those dominated by what they need anyway.

    * An e-node whose children need its class, or a class above it on every path from the root,
      is in no acyclic choice.
    * An e-node is dominated by another of its class that costs no more, if all children of that are among
      the classes that the first needs in any case. Those are there, and do not depend on the class.
    """
    problem = reduced.problem
    needs = node_needs(problem, required_classes(problem, check), check)
    above = dominators(problem, check)
    children = children_by_node(problem)
    cost = problem.cost_us.tolist()
    nodes = np.ones(problem.n_nodes, dtype=np.bool_)
    for klass, members in enumerate(nodes_by_class(problem)):
        if klass % ASKED_EVERY == 0:
            check()
        open_nodes = []
        for node in members:
            if needs[node] & above[klass]:
                nodes[node] = False
            else:
                open_nodes.append(node)
        if len(open_nodes) > 1:
            nodes[_dominated(open_nodes, cost, children, needs)] = False
    return keep(reduced, nodes)


def _dominated(
    members: Sequence[int], cost: list[float], children: Adjacency, needs: list[int]
) -> list[int]:
    """Return the e-nodes of a class that another one makes superfluous.

    The dominating one costs no more and, as required classes are closed, needs no more in any case: sorted
    by both it comes first, or either may go. To find it among many, each kept e-node is filed under one
    child, which must be among the needs of what it dominates.
    """
    dominated: list[int] = []
    filed: dict[int, list[int]] = {}
    filed_bits = 0
    for node in sorted(members, key=lambda item: (cost[item], needs[item].bit_count(), item)):
        need = needs[node]
        candidates = members_of(need & filed_bits) if need & filed_bits else []
        if -1 in filed or any(
            all(need >> child & 1 for child in children[other])
            for key in candidates
            for other in filed[key]
        ):
            dominated.append(node)
            continue
        key = max(children[node], default=-1)
        filed.setdefault(key, []).append(node)
        if key >= 0:
            filed_bits |= 1 << key
    return dominated


_RELATIVE_SLACK = 1e-9
"""Sums of costs that differ by less are taken as equal: they may differ by rounding only."""


@reduction(
    "underivable",
    "drop e-nodes without an acyclic derivation",
    stage=ReductionStage.LINEAR,
    order=10,
    earns_on=TechniqueGain("inception_v3 k=2", "simplex_iterations"),
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
    stage=ReductionStage.LINEAR,
    order=20,
    earns_on=TechniqueGain("zones 300", "e_nodes"),
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
    "drop e-nodes costlier than a whole derivation of their class",
    stage=ReductionStage.COSTLY,
    order=40,
    earns_on=TechniqueGain("rings 100", "e_nodes"),
)
def drop_dear(reduced: Reduced, check: Check = unlimited) -> Reduced:
    """Drop e-nodes that cost more than a whole derivation of their class, itself acyclic."""
    problem = reduced.problem
    upper = DagDeriver(problem, check=check).derivation_costs(problem.cost_us)
    limit = upper[problem.node_class] * (1 + _RELATIVE_SLACK)
    return keep(reduced, problem.cost_us <= limit)
