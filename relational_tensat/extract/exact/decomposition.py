"""Decomposition: the components of an e-graph, and the choice that their choices make up.

The root alone needs what every choice contains. So components share nothing: each is a problem of its own,
and their optima add up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from relational_tensat.extract.exact.isomorphic import Group, grouped
from relational_tensat.extract.exact.reduce.smaller_problem import Mask, Reduced
from relational_tensat.extract.exact.solve.search import Progress, Search, SolverOptions
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


SearchOne = Callable[[Search, int, SolverOptions], None]
"""Searches one component, given how many are isomorphic to it (itself included), within limits."""


class Assembly:
    """The components' searches; the search of the whole gets their choices and bounds.

    Args:
        whole: the search of the whole.
        reduced: its e-graph, or one that stands for it; its root has one e-node.
        start: a choice of the reduced e-graph.

    Attributes:
        searches: one per component; each begins with what the start has of it.
    """

    def __init__(self, whole: Search, reduced: Reduced, start: Ints) -> None:
        self._whole, self._reduced, self._choice = whole, reduced, start.copy()
        root_node = int(start[reduced.problem.root])
        self._constant_us = float(reduced.problem.cost_us[root_node])
        self._components: Sequence[Component] = components(reduced.problem)
        self.searches = [
            Search(component.problem, component.restrict(start)) for component in self._components
        ]
        self._known_cost_us = [search.cost_us for search in self.searches]
        self._cheaper: list[int] = []
        self._is_held = False
        for index, (component, search) in enumerate(
            zip(self._components, self.searches, strict=True)
        ):
            if not component.leaves_choice:
                search.raise_bound(search.cost_us)
            search.progress = self._listener(index)

    def groups(self, options: SolverOptions) -> list[Group]:
        """Return the components in groups of isomorphic ones, if that technique is used."""
        return grouped([search.problem for search in self.searches], options.techniques)

    @property
    def notes(self) -> list[str]:
        """The notes of the searches, each once."""
        return list(dict.fromkeys(note for search in self.searches for note in search.notes))

    def search_each(
        self, groups: Sequence[Group], search_one: SearchOne, options: SolverOptions
    ) -> None:
        """Search the first of every group, each for its share of the time that is left."""
        try:
            for index, group in enumerate(groups):
                limits = options.for_share(1 / (len(groups) - index))
                with self.first_of(group) as search:
                    search_one(search, len(group), limits)
        finally:  # what an interrupted search has proven counts as well
            self.sum_up()

    def sum_up(self) -> None:
        """Report the costs and bounds of the components to the whole."""
        for index in self._cheaper:
            self._components[index].write(self.searches[index].best, self._choice)
        if self._cheaper:
            self._whole.offer(self._reduced.lift(self._choice))
            self._cheaper.clear()
        bounds = [search.bound_us for search in self.searches]
        self._whole.raise_bound(math.fsum([self._constant_us, *bounds]))

    @contextmanager
    def first_of(self, group: Group) -> Iterator[Search]:
        """Give the search of the first of some isomorphic components, to be searched in the block.

        It begins with the best of all; its choice and bound hold for the others.
        """
        (index, _), *others = group
        first = self.searches[index]
        for other, isomorphism in others:
            if isomorphism is not None and self.searches[other].cost_us < first.cost_us:
                first.offer(isomorphism.onto_first(self.searches[other].best))
        try:
            yield first
        finally:
            with self._held():
                for other, isomorphism in others:
                    search = self.searches[other]
                    if isomorphism is not None and first.cost_us < search.cost_us:
                        search.offer(isomorphism.onto_second(first.best))
                    if isomorphism is not None:
                        search.raise_bound(first.bound_us)

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Report the block's findings to the whole once, at the end: a report costs as much as the whole is
        large."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            self.sum_up()

    def _listener(self, index: int) -> Progress:
        def listen(cost_us: float, _: float) -> None:
            if cost_us < self._known_cost_us[index]:
                self._known_cost_us[index] = cost_us
                self._cheaper.append(index)
            if not self._is_held:
                self.sum_up()

        return listen
