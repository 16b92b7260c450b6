"""Classes that every choice contains: given once, to the root, and needed nowhere else.

A class required by the root is there in any case: whoever else needs it finds it. So its
users need not ask for it, the root does, and chains of layers decompose into layers that share
nothing (``parts``).
"""

from __future__ import annotations

import numpy as np

from relational_tensat.base.deadline import Check, unlimited
from relational_tensat.extract.dependencies import strong_components_of_classes
from relational_tensat.extract.exact.reduce.reduced import Reduced, keep
from relational_tensat.extract.exact.reduce.reductions.dropping import drop_self_loops
from relational_tensat.extract.exact.reduce.required_classes import members_of, required_classes
from relational_tensat.extract.index import edge_owner, nodes_by_class
from relational_tensat.extract.problem import UNUSED, ExtractionProblem
from relational_tensat.extract.techniques import Gain, Technique, declare

PINNING = declare(
    Technique(
        "pinning",
        "let the root need what every choice contains, and decompose the rest",
        earns_on=Gain("bert k=1", "simplex_iterations"),
    )
)


def pin_required(reduced: Reduced, check: Check = unlimited) -> Reduced:
    """Let the root need every class that it requires, and nobody else.

    The edge to a required class stays only inside a strongly connected component, where it could
    close a cycle. The root of the result is a class of its own with one free e-node; in the
    origins both are ``UNUSED``.
    """
    reduced = drop_self_loops(reduced)  # no e-node may ask for the root, which asks for all
    required = members_of(required_classes(reduced.problem, check)[reduced.problem.root])
    below = reduced.problem.root
    reduced = with_single_root(reduced)
    problem = reduced.problem
    if problem.root == below:
        required = [klass for klass in required if klass != problem.root]
    owner = edge_owner(problem.child_ptr)
    parent = problem.node_class[owner]
    component = np.array(strong_components_of_classes(problem))
    is_required = np.zeros(problem.n_classes, dtype=np.bool_)
    is_required[required] = True
    at_root = parent == problem.root
    stays = ~at_root & ~(
        is_required[problem.child_idx] & (component[parent] != component[problem.child_idx])
    )
    root_node = nodes_by_class(problem)[problem.root][0]
    edges = (
        np.concatenate([owner[stays], np.full(len(required), root_node)]).astype(np.int32),
        np.concatenate([problem.child_idx[stays], required]).astype(np.int32),
    )
    return keep(reduced, np.ones(problem.n_nodes, dtype=np.bool_), edges=edges)


def with_single_root(reduced: Reduced) -> Reduced:
    """Return the e-graph with a root of one e-node that no other e-node needs.

    Where it is not so, one free e-node that needs the root is put above it, in a class of its
    own; in the origins both are ``UNUSED``.
    """
    problem = reduced.problem
    is_needed = bool(np.any(problem.child_idx == problem.root))
    if not is_needed and len(nodes_by_class(problem)[problem.root]) == 1:
        return reduced
    top = problem.n_classes
    return Reduced(
        problem=ExtractionProblem(
            cost_us=np.append(problem.cost_us, 0.0),
            node_class=np.append(problem.node_class, np.int32(top)),
            child_ptr=np.append(problem.child_ptr, np.int32(len(problem.child_idx) + 1)),
            child_idx=np.append(problem.child_idx, np.int32(problem.root)),
            n_classes=top + 1,
            root=top,
            original=np.full(top + 1, UNUSED, dtype=np.int32),
        ),
        source=reduced.source,
        node_origin=np.append(reduced.node_origin, np.int32(UNUSED)),
        class_origin=np.append(reduced.class_origin, np.int32(UNUSED)),
        fixed=reduced.fixed,
        chains=reduced.chains,
    )
