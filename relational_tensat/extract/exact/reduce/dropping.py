"""Reductions that drop e-nodes which some optimum does without."""

from __future__ import annotations

import numpy as np

from relational_tensat.extract.exact.reduce.reduced import Mask, Reduced, keep
from relational_tensat.extract.index import (
    children_by_node,
    edge_owner,
    nodes_by_class,
    parents_by_class,
)
from relational_tensat.extract.problem import ExtractionProblem, Floats

_RELATIVE_SLACK = 1e-9
"""Sums of costs that differ by less are taken as equal: they may differ by rounding only."""


def drop_unreachable(reduced: Reduced) -> Reduced:
    """Drop classes that the root does not reach."""
    return keep(reduced, np.ones(reduced.problem.n_nodes, dtype=np.bool_))


def drop_underivable(reduced: Reduced) -> Reduced:
    """Drop e-nodes that no acyclic choice can contain: a child has no acyclic derivation."""
    problem = reduced.problem
    stuck = ~derivable_classes(problem)[problem.child_idx]
    nodes = np.ones(problem.n_nodes, dtype=np.bool_)
    nodes[edge_owner(problem.child_ptr)[stuck]] = False
    return keep(reduced, nodes)


def derivable_classes(problem: ExtractionProblem) -> Mask:
    """Return which classes have an acyclic derivation, found from the leaves up."""
    missing = np.diff(problem.child_ptr).tolist()
    parents = parents_by_class(problem)
    node_class = problem.node_class.tolist()
    derived = [False] * problem.n_classes
    ready = [node for node, count in enumerate(missing) if count == 0]
    while ready:
        klass = node_class[ready.pop()]
        if derived[klass]:
            continue
        derived[klass] = True
        for parent in parents[klass]:
            missing[parent] -= 1
            if missing[parent] == 0:
                ready.append(parent)
    return np.array(derived, dtype=np.bool_)


def drop_self_loops(reduced: Reduced) -> Reduced:
    """Drop e-nodes that need their own class, or the root's class (which needs them)."""
    problem = reduced.problem
    owner = edge_owner(problem.child_ptr)
    loops = problem.child_idx == problem.node_class[owner]
    loops |= problem.child_idx == problem.root
    nodes = np.ones(problem.n_nodes, dtype=np.bool_)
    nodes[owner[loops]] = False
    return keep(reduced, nodes)


def drop_dominated(reduced: Reduced) -> Reduced:
    """Drop e-nodes beside which another of the class costs no more and needs no other child."""
    problem = reduced.problem
    cost = problem.cost_us.tolist()
    children = [frozenset(part) for part in children_by_node(problem)]
    nodes = np.ones(problem.n_nodes, dtype=np.bool_)
    for members in nodes_by_class(problem):
        if len(members) < 2:
            continue
        by_strength = sorted(members, key=lambda node: (cost[node], len(children[node]), node))
        # An e-node that dominates is cheaper, or costs as much with no more children: it is before.
        kept_by_child: dict[int, list[int]] = {}
        leaf_kept = False
        for node in by_strength:
            needs = children[node]
            dominated = leaf_kept or any(
                children[other] <= needs
                for child in needs
                for other in kept_by_child.get(child, ())
            )
            if dominated:
                nodes[node] = False
            elif needs:
                # A subset of another set contains its own least child, so that finds it.
                kept_by_child.setdefault(min(needs), []).append(node)
            else:
                leaf_kept = True
    return keep(reduced, nodes)


def drop_dearer_than_derivation(reduced: Reduced, upper: Floats) -> Reduced:
    """Drop e-nodes that cost more than a whole derivation of their class, itself acyclic.

    Args:
        reduced: the e-graph.
        upper: per class, the cost in µs of one acyclic derivation of it,
            infinite where none is known.
    """
    problem = reduced.problem
    limit = upper[problem.node_class] * (1 + _RELATIVE_SLACK)
    return keep(reduced, problem.cost_us <= limit)
