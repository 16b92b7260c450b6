"""Classes that every choice contains, and the parts that an e-graph falls into once they are given.

A class in the must set of the root is there in any case: whoever else needs it finds it. So its
users need not ask for it, the root does, and chains of layers fall apart into layers that share
nothing. Each part is then a problem of its own, and their optima add up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relational_tensat.extract.dropping import drop_self_loops
from relational_tensat.extract.index import edge_owner, nodes_by_class
from relational_tensat.extract.loops import class_components
from relational_tensat.extract.must import members_of, must_sets
from relational_tensat.extract.problem import UNUSED, ExtractionProblem, Ints
from relational_tensat.extract.reduced import Reduced, keep
from relational_tensat.extract.timekeeping import Check, unlimited


def pin_required(reduced: Reduced, check: Check = unlimited) -> Reduced:
    """Let the root need every class of its must set, and nobody else.

    The edge to a required class stays only inside a strongly connected component, where it could
    close a circle. The root of the result is a class of its own with one free e-node; in the
    origins both are ``UNUSED``.
    """
    reduced = drop_self_loops(reduced)  # no e-node may ask for the root, which asks for all
    required = members_of(must_sets(reduced.problem, check)[reduced.problem.root])
    below = reduced.problem.root
    reduced = with_single_root(reduced)
    problem = reduced.problem
    if problem.root == below:
        required = [klass for klass in required if klass != problem.root]
    owner = edge_owner(problem.child_ptr)
    parent = problem.node_class[owner]
    component = np.array(class_components(problem))
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
    needed = bool(np.any(problem.child_idx == problem.root))
    if not needed and len(nodes_by_class(problem)[problem.root]) == 1:
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


@dataclass(frozen=True, eq=False)
class Part:
    """A piece of an e-graph whose choice touches no other piece.

    Attributes:
        problem: the piece; its root is one free e-node over the classes that the whole requires.
        nodes: per e-node of the piece but its root, the e-node of the whole.
        classes: per class of the piece but its root, the class of the whole.
    """

    problem: ExtractionProblem
    nodes: Ints
    classes: Ints

    def restrict(self, choice: Ints) -> Ints:
        """Return what a choice of the whole takes in this piece."""
        position = {int(node): place for place, node in enumerate(self.nodes)}
        inner = [
            UNUSED if node == UNUSED else position[node] for node in choice[self.classes].tolist()
        ]
        return np.array([*inner, self.problem.n_nodes - 1], dtype=np.int32)

    def write(self, choice: Ints, whole: Ints) -> None:
        """Enter the choice of this piece into a choice of the whole."""
        inner = choice[:-1]
        used = np.flatnonzero(inner != UNUSED)
        whole[self.classes[used]] = self.nodes[inner[used]]


def parts(problem: ExtractionProblem) -> list[Part]:
    """Return the pieces that an e-graph falls into without its root, the smallest first.

    The root must have one e-node.
    """
    label = _connected(problem)
    (root_node,) = nodes_by_class(problem)[problem.root]
    required = problem.children(root_node)
    pieces = [
        _part(problem, np.flatnonzero(label == name), required)
        for name in np.unique(label)
        if name != label[problem.root]
    ]
    return sorted(pieces, key=lambda piece: piece.problem.n_nodes)


def _part(problem: ExtractionProblem, classes: NDArray[np.intp], required: Ints) -> Part:
    """Cut out the e-graph of some classes that need no others."""
    inside = np.zeros(problem.n_classes, dtype=np.bool_)
    inside[classes] = True
    number = np.cumsum(inside) - 1
    nodes = np.flatnonzero(inside[problem.node_class])
    edges = inside[problem.node_class[edge_owner(problem.child_ptr)]]
    roots = number[required[inside[required]]]
    arity = np.append(np.diff(problem.child_ptr)[nodes], len(roots))
    piece = ExtractionProblem(
        cost_us=np.append(problem.cost_us[nodes], 0.0),
        node_class=np.append(number[problem.node_class[nodes]], len(classes)).astype(np.int32),
        child_ptr=np.concatenate([[0], np.cumsum(arity)]).astype(np.int32),
        child_idx=np.concatenate([number[problem.child_idx[edges]], roots]).astype(np.int32),
        n_classes=len(classes) + 1,
        root=len(classes),
        original=np.full(len(classes) + 1, UNUSED, dtype=np.int32),
    )
    return Part(piece, nodes.astype(np.int32), np.asarray(classes, dtype=np.int32))


def _connected(problem: ExtractionProblem) -> Ints:
    """Return, per class, a label of its connected piece, edges of the root left out."""
    parent = list(range(problem.n_classes))

    def find(klass: int) -> int:
        while parent[klass] != klass:
            parent[klass] = parent[parent[klass]]
            klass = parent[klass]
        return klass

    source = problem.node_class[edge_owner(problem.child_ptr)].tolist()
    for klass, child in zip(source, problem.child_idx.tolist(), strict=True):
        if klass != problem.root:
            first, second = find(klass), find(child)
            parent[max(first, second)] = min(first, second)
    return np.array([find(klass) for klass in range(problem.n_classes)], dtype=np.int32)
