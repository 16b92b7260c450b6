"""A smaller e-graph that stands for a larger one, and the way back.

A reduction maps a :class:`Reduced` to a smaller one and keeps at least one optimum. E-nodes and
classes are renumbered each time; ``node_origin`` and ``class_origin`` name them in the e-graph
that all began with, and ``fixed`` holds the choices already made for classes that are gone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relational_tensat.extract.index import edge_owner
from relational_tensat.extract.problem import UNUSED, ExtractionProblem, Floats, Ints, reachable

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Reduced:
    """An e-graph and what its e-nodes and classes are in the e-graph it came from.

    Attributes:
        problem: the smaller e-graph; its ``original`` is all unused.
        source: the e-graph that all reductions began with.
        node_origin: per e-node, one of the source (where e-nodes were merged, the topmost), or
            ``UNUSED`` for the free e-node of a root put above all.
        class_origin: per class, the class of the source, or ``UNUSED`` for such a root.
        fixed: per class of the source, the e-node to take if the class is needed but is no longer
            in ``problem``.
    """

    problem: ExtractionProblem
    source: ExtractionProblem
    node_origin: Ints
    class_origin: Ints
    fixed: Ints

    def lift(self, choice: Ints) -> Ints:
        """Return the choice of the source that a choice of the smaller e-graph stands for."""
        lifted = self.fixed.copy()
        used = np.flatnonzero((choice != UNUSED) & (self.class_origin != UNUSED))
        lifted[self.class_origin[used]] = self.node_origin[choice[used]]
        return reachable(self.source, lifted)

    @property
    def size(self) -> tuple[int, int, int]:
        """Numbers of e-nodes, classes and edges."""
        return self.problem.n_nodes, self.problem.n_classes, len(self.problem.child_idx)


def unreduced(problem: ExtractionProblem) -> Reduced:
    """Begin: the e-graph stands for itself."""
    bare = ExtractionProblem(
        problem.cost_us,
        problem.node_class,
        problem.child_ptr,
        problem.child_idx,
        problem.n_classes,
        problem.root,
        np.full(problem.n_classes, UNUSED, dtype=np.int32),
    )
    return Reduced(
        problem=bare,
        source=problem,
        node_origin=np.arange(problem.n_nodes, dtype=np.int32),
        class_origin=np.arange(problem.n_classes, dtype=np.int32),
        fixed=np.full(problem.n_classes, UNUSED, dtype=np.int32),
    )


def keep(
    reduced: Reduced,
    nodes: Mask,
    *,
    fixed: Ints | None = None,
    cost_us: Floats | None = None,
    edges: tuple[Ints, Ints] | None = None,
) -> Reduced:
    """Keep some e-nodes, drop the classes that the root no longer reaches, and renumber.

    Args:
        reduced: where to begin.
        nodes: which e-nodes to keep.
        fixed: choices for classes of the *source* that go away, if any were made.
        cost_us: new costs of the e-nodes (indexed as before renumbering).
        edges: new children, as (e-node, child class) pairs in the numbering before, if they change.
    """
    problem = reduced.problem
    owner, child = edges or (edge_owner(problem.child_ptr), problem.child_idx)
    alive = nodes[owner]
    owner, child = owner[alive], child[alive]
    needed = _reached(problem, owner, child)
    nodes = nodes & needed[problem.node_class]
    alive = nodes[owner]
    owner, child = owner[alive], child[alive]
    new_class = np.cumsum(needed) - 1
    new_node = np.cumsum(nodes) - 1
    order = np.lexsort((child, owner))
    counts = np.bincount(new_node[owner], minlength=int(nodes.sum()))
    costs = problem.cost_us if cost_us is None else cost_us
    n_classes = int(needed.sum())
    return Reduced(
        problem=ExtractionProblem(
            cost_us=costs[nodes],
            node_class=new_class[problem.node_class[nodes]].astype(np.int32),
            child_ptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
            child_idx=new_class[child[order]].astype(np.int32),
            n_classes=n_classes,
            root=int(new_class[problem.root]),
            original=np.full(n_classes, UNUSED, dtype=np.int32),
        ),
        source=reduced.source,
        node_origin=reduced.node_origin[nodes],
        class_origin=reduced.class_origin[needed],
        fixed=reduced.fixed if fixed is None else fixed,
    )


def _reached(problem: ExtractionProblem, owner: Ints, child: Ints) -> Mask:
    """Return which classes the root reaches over these edges, a breadth-first layer at a time."""
    source = problem.node_class[owner]
    order = np.argsort(source, kind="stable")
    target = child[order]
    starts = np.searchsorted(source[order], np.arange(problem.n_classes + 1))
    seen = np.zeros(problem.n_classes, dtype=np.bool_)
    seen[problem.root] = True
    layer = np.array([problem.root])
    while len(layer):
        counts = starts[layer + 1] - starts[layer]
        total = int(counts.sum())
        offsets = np.repeat(starts[layer] - (np.cumsum(counts) - counts), counts)
        found = target[offsets + np.arange(total)]
        layer = np.unique(found[~seen[found]])
        seen[layer] = True
    return seen
