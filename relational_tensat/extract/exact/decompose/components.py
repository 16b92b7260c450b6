"""The components of an e-graph once the root alone needs what every choice contains.

They share nothing: each is a problem of its own, and their optima add up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relational_tensat.extract.exact.reduce.reduced import Mask
from relational_tensat.extract.index import edge_owner, nodes_by_class
from relational_tensat.extract.problem import UNUSED, ExtractionProblem, Ints


@dataclass(frozen=True, eq=False)
class Component:
    """A part of an e-graph whose choice touches no other part.

    Attributes:
        problem: the component; its root is one free e-node over the classes that the whole requires.
        nodes: per e-node of the component but its root, the e-node of the whole, in rising order.
        classes: per class of the component but its root, the class of the whole, likewise.
    """

    problem: ExtractionProblem
    nodes: Ints
    classes: Ints

    @property
    def leaves_choice(self) -> bool:
        """Whether some class has several e-nodes."""
        return bool(_has_several(self.problem).any())

    def restrict(self, choice: Ints) -> Ints:
        """Return what a choice of the whole takes in this component."""
        chosen_nodes = choice[self.classes]
        inner = np.where(chosen_nodes == UNUSED, UNUSED, np.searchsorted(self.nodes, chosen_nodes))
        return np.append(inner, self.problem.n_nodes - 1).astype(np.int32)

    def write(self, choice: Ints, whole: Ints) -> None:
        """Enter the choice of this component into a choice of the whole."""
        inner = choice[:-1]
        used_classes = np.flatnonzero(inner != UNUSED)
        whole[self.classes[used_classes]] = self.nodes[inner[used_classes]]


def components(problem: ExtractionProblem) -> list[Component]:
    """Return the connected components of an e-graph without its root, the smallest first.

    All that leaves no choice is one component. The root must have one e-node.
    """
    label = _connected(problem)
    decides = np.zeros(problem.n_classes, dtype=np.bool_)
    decides[label[_has_several(problem)]] = True
    decides[problem.root] = True  # a label of its own
    label[~decides[label]] = np.argmin(decides[label])
    (root_node,) = nodes_by_class(problem)[problem.root]
    names, inverse = np.unique(label, return_inverse=True)
    of_class = inverse.astype(np.int32)
    classes = _Sorted(of_class, len(names))
    nodes = _Sorted(of_class[problem.node_class], len(names))
    required = problem.children(root_node)
    roots = _Sorted(of_class[required], len(names))
    index = np.empty(problem.n_classes, dtype=np.int32)  # of a class within its component
    index[classes.order] = classes.places
    parts = [
        _component(problem, index, classes.of(name), nodes.of(name), required[roots.of(name)])
        for name in range(len(names))
        if name != of_class[problem.root]
    ]
    return sorted(parts, key=lambda part: part.problem.n_nodes)


class _Sorted:
    """Items by the component that they belong to, in their order within each.

    Attributes:
        order: all items, those of the first component first.
        places: per entry of it, its place within its component.
    """

    def __init__(self, component: Ints, n_components: int) -> None:
        self.order = np.argsort(component, kind="stable").astype(np.int32)
        counts = np.bincount(component, minlength=n_components)
        self._ends = np.concatenate([[0], np.cumsum(counts)])
        self.places = np.arange(len(component)) - self._ends[component[self.order]]

    def of(self, component: int) -> Ints:
        """Return the items of a component."""
        return self.order[self._ends[component] : self._ends[component + 1]]


def _component(
    problem: ExtractionProblem, index: Ints, classes: Ints, nodes: Ints, roots: Ints
) -> Component:
    """Cut out the e-graph of some classes, and the e-nodes of these, that need no others."""
    starts = problem.child_ptr[nodes]
    arity = problem.child_ptr[nodes + 1] - starts
    ends = np.cumsum(arity)
    edges = np.arange(int(arity.sum())) + np.repeat(starts - (ends - arity), arity)
    part = ExtractionProblem(
        cost_us=np.append(problem.cost_us[nodes], 0.0),
        node_class=np.append(index[problem.node_class[nodes]], len(classes)).astype(np.int32),
        child_ptr=np.concatenate([[0], ends, [len(edges) + len(roots)]]).astype(np.int32),
        child_idx=index[np.concatenate([problem.child_idx[edges], roots])],
        n_classes=len(classes) + 1,
        root=len(classes),
        original=np.full(len(classes) + 1, UNUSED, dtype=np.int32),
    )
    return Component(part, nodes, classes)


def _has_several(problem: ExtractionProblem) -> Mask:
    """Return which classes have several e-nodes."""
    return np.bincount(problem.node_class, minlength=problem.n_classes) > 1


def _connected(problem: ExtractionProblem) -> Ints:
    """Return, per class, a label of its connected component, edges of the root left out."""
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
