"""Parts of an e-graph in which a better choice may be found soon: local improvement.

What is found in a part is a choice of the whole; what is proven of it says nothing about the whole.
"""

from __future__ import annotations

import numpy as np

from relational_tensat.base.deadline import Check, unlimited
from relational_tensat.extract.exact.reduce.reduced import Mask
from relational_tensat.extract.exact.reduce.required import must_sets, node_needs
from relational_tensat.extract.index import nodes_by_class
from relational_tensat.extract.problem import UNUSED, ExtractionProblem, Ints

LEAST_NODES = 1000
"""Smaller e-graphs are solved as a whole."""

_MOST = 0.5
"""What the relaxation has chosen is a part worth looking at up to this fraction of the e-nodes."""


def early(problem: ExtractionProblem, check: Check = unlimited) -> Mask | None:
    """Return the e-nodes that need no more of what is required than their class does anyway.

    Of the classes that the root's one e-node requires, some rest on others. An e-node that needs
    more of them than its class must is a detour over what comes later, as where two products of
    different layers are computed as one to get the earlier of them.

    Returns:
        A mask; None where this is nothing less than all, or the root has several e-nodes.
    """
    root_nodes = nodes_by_class(problem)[problem.root]
    if len(root_nodes) != 1:
        return None
    must = must_sets(problem, check)
    needs = node_needs(problem, must, check)
    required = sum(1 << klass for klass in problem.children(root_nodes[0]).tolist())
    detour = [
        bool(needs[node] & required & ~must[klass])
        for node, klass in enumerate(problem.node_class.tolist())
    ]
    return ~np.array(detour, dtype=np.bool_) if any(detour) else None


def chosen_by(problem: ExtractionProblem, touched: Mask, best: Ints) -> Mask | None:
    """Return the e-nodes that the relaxation has chosen any of, and those of the best choice.

    Args:
        problem: the e-graph.
        touched: per e-node, whether the relaxation chose any of it.
        best: a choice.

    Returns:
        A mask; None where that is too many to be a part worth looking at.
    """
    if touched.mean() > _MOST:
        return None
    nodes = touched.copy()
    nodes[best[best != UNUSED]] = True
    return nodes
