"""Isomorphic components: one is searched, and its answer holds for the others.

A net that repeats a cell decomposes into components that repeat. Two are isomorphic if classes and
e-nodes can be renamed so that costs, members, children and root agree. Candidates are found by
colour refinement (Weisfeiler and Leman): classes are distinguished by their members and users, these
by costs and children, until no more are distinguished. Where several classes keep one colour, one
of them gets a colour of its own, and all are refined again. The result is a guess until it has been
verified.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from relational_tensat.extract.index import edge_owner
from relational_tensat.extract.problem import UNUSED, ExtractionProblem, Ints
from relational_tensat.extract.techniques import Technique, TechniqueGain, Techniques, declare

ISOMORPHIC = declare(
    Technique(
        "isomorphic",
        "search isomorphic components once",
        earns_on=TechniqueGain("bert k=1", "simplex_iterations"),
    )
)

Colours = NDArray[np.uint64]

_MOST_INDIVIDUALIZED = 32
"""So many classes get a colour of their own at most; components of more symmetry are searched each."""

_FIRST, _SECOND, _THIRD = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)


@dataclass(frozen=True, eq=False)
class Isomorphism:
    """How a component is renamed to become another.

    Attributes:
        first, second: the two components.
        classes: per class of the first, the class of the second that it is.
        nodes: per e-node of the first, likewise.
    """

    first: ExtractionProblem
    second: ExtractionProblem
    classes: Ints
    nodes: Ints

    def onto_second(self, choice: Ints) -> Ints:
        """Return the choice of the second component that a choice of the first is."""
        renamed = np.full(self.second.n_classes, UNUSED, dtype=np.int32)
        used_classes = np.flatnonzero(choice != UNUSED)
        renamed[self.classes[used_classes]] = self.nodes[choice[used_classes]]
        return renamed

    def onto_first(self, choice: Ints) -> Ints:
        """Return the choice of the first component that a choice of the second is."""
        back = np.empty_like(self.nodes)
        back[self.nodes] = np.arange(len(self.nodes), dtype=np.int32)
        renamed = choice[self.classes]
        return np.where(renamed == UNUSED, np.int32(UNUSED), back[renamed])


Group: TypeAlias = list[tuple[int, Isomorphism | None]]
"""Isomorphic components: the index of each, and how the first becomes it (None: it is the first)."""


def grouped(components: Sequence[ExtractionProblem], techniques: Techniques) -> list[Group]:
    """Return the isomorphic groups; each component alone where the technique is not used."""
    if techniques.uses(ISOMORPHIC):
        return isomorphic_groups(components)
    return [[(index, None)] for index in range(len(components))]


def isomorphic_groups(components: Sequence[ExtractionProblem]) -> list[Group]:
    """Put isomorphic components together, in the order of their first."""
    groups: list[Group] = []
    firsts: dict[tuple[int, ...], list[tuple[int, _Coloured]]] = {}  # signature -> group, first
    # names and all -> group
    group_by_names: dict[tuple[bytes, ...], tuple[int, Isomorphism | None]] = {}
    for index, component in enumerate(components):
        names = tuple(array.tobytes() for array in _arrays(component))
        if names not in group_by_names:  # cells that were explored alike have the same names, too
            group_by_names[names] = _add(index, component, groups, firsts)
            continue
        group, isomorphism = group_by_names[names]
        first = components[groups[group][0][0]]
        from_first = isomorphism or Isomorphism(
            first, first, _same(first.n_classes), _same(first.n_nodes)
        )
        groups[group].append((index, replace(from_first, second=component)))
    return groups


def _add(
    index: int,
    component: ExtractionProblem,
    groups: list[Group],
    firsts: dict[tuple[int, ...], list[tuple[int, _Coloured]]],
) -> tuple[int, Isomorphism | None]:
    """Put a component into its group, or a new one; return the group, and how its first becomes it."""
    coloured = _Coloured.plain(component)
    candidates = firsts.setdefault(coloured.signature, [])
    for group, other in candidates:
        isomorphism = _isomorphism(other, coloured)
        if isomorphism is not None:
            groups[group].append((index, isomorphism))
            return group, isomorphism
    candidates.append((len(groups), coloured))
    groups.append([(index, None)])
    return len(groups) - 1, None


def _arrays(problem: ExtractionProblem) -> tuple[NDArray[Any], ...]:
    """Return the arrays that describe a component completely."""
    sizes = np.array([problem.n_classes, problem.root])
    return problem.cost_us, problem.node_class, problem.child_ptr, problem.child_idx, sizes


def is_isomorphism(isomorphism: Isomorphism) -> bool:
    """Verify a renaming: costs, members, children and root agree, and no two share a name."""
    first, second = isomorphism.first, isomorphism.second
    sizes = (first.n_nodes, first.n_classes, len(first.child_idx))
    if sizes != (second.n_nodes, second.n_classes, len(second.child_idx)):
        return False
    if not (_is_renaming(isomorphism.classes) and _is_renaming(isomorphism.nodes)):
        return False
    return bool(
        isomorphism.classes[first.root] == second.root
        and np.array_equal(first.cost_us, second.cost_us[isomorphism.nodes])
        and np.array_equal(
            isomorphism.classes[first.node_class], second.node_class[isomorphism.nodes]
        )
        and np.array_equal(
            _edges(second, _same(second.n_nodes), _same(second.n_classes)),
            _edges(first, isomorphism.nodes, isomorphism.classes),
        )
    )


@dataclass(frozen=True, eq=False)
class _Coloured:
    """A component with a colour for each class and e-node, comparable between components."""

    problem: ExtractionProblem
    classes: Colours
    nodes: Colours
    n_colours: int

    @staticmethod
    def plain(problem: ExtractionProblem) -> _Coloured:
        """Colour a component by costs and root alone, then refine."""
        colours = np.zeros(problem.n_classes, dtype=np.uint64)
        colours[problem.root] = 1
        return _refined(problem, colours)

    @property
    def signature(self) -> tuple[int, ...]:
        """The key that isomorphic components share."""
        problem = self.problem
        colours = np.sort(self.nodes)
        place = np.arange(len(colours), dtype=np.uint64)
        return (
            problem.n_nodes,
            problem.n_classes,
            len(problem.child_idx),
            int(_mixed(colours + place * _FIRST).sum()),
        )

    @property
    def is_discrete(self) -> bool:
        """Whether no two classes share a colour."""
        return self.n_colours == self.problem.n_classes

    def shared(self) -> Ints:
        """Return the classes of the least colour that several share, or none."""
        values, counts = np.unique(self.classes, return_counts=True)
        several = values[counts > 1]
        if not len(several):
            return np.empty(0, dtype=np.int32)
        return np.flatnonzero(self.classes == several[0]).astype(np.int32)

    def individualized(self, klass: int) -> _Coloured:
        """Give a class a colour of its own, and refine."""
        colours = self.classes.copy()
        colours[klass] = _mixed(colours[klass : klass + 1] + _THIRD)[0]
        return _refined(self.problem, colours)


def _isomorphism(first: _Coloured, second: _Coloured) -> Isomorphism | None:
    """Return how the first component becomes the second, where that is found and holds."""
    for _ in range(_MOST_INDIVIDUALIZED):
        if first.is_discrete:
            break
        klass, *_ = first.shared().tolist()
        first = first.individualized(klass)
        signature = first.signature
        refined = (second.individualized(other) for other in second.shared().tolist())
        match = next((item for item in refined if item.signature == signature), None)
        if match is None:
            return None
        second = match
    if not (first.is_discrete and second.is_discrete):
        return None
    isomorphism = Isomorphism(
        first.problem,
        second.problem,
        _matched(first.classes, second.classes),
        _matched(first.nodes, second.nodes),
    )
    return isomorphism if is_isomorphism(isomorphism) else None


def _matched(first: Colours, second: Colours) -> Ints:
    """Return, per item of the first, the one of the second with its colour, ties in order."""
    matched = np.empty(len(first), dtype=np.int32)
    matched[np.argsort(first, kind="stable")] = np.argsort(second, kind="stable")
    return matched


def _refined(problem: ExtractionProblem, colours: Colours) -> _Coloured:
    """Distinguish classes by what they consist of and who uses them, as far as that goes."""
    owner = edge_owner(problem.child_ptr)
    costs = _mixed(problem.cost_us.view(np.uint64))
    n_colours = len(np.unique(colours))
    while True:
        below = _summed(owner, _mixed(colours[problem.child_idx] + _FIRST), problem.n_nodes)
        nodes = _mixed(costs + _mixed(colours[problem.node_class] + _SECOND) * _THIRD + below)
        members = _summed(problem.node_class, nodes, problem.n_classes)
        users = _summed(problem.child_idx, nodes[owner], problem.n_classes)
        finer = _mixed(colours + _mixed(members + _FIRST) + _mixed(users + _SECOND) * _THIRD)
        n_finer = len(np.unique(finer))
        if n_finer <= n_colours:
            return _Coloured(problem, colours, nodes, n_colours)
        colours, n_colours = finer, n_finer


def _summed(keys: Ints, values: Colours, n_keys: int) -> Colours:
    """Return, per key, the sum of its values modulo 2^64: the same in any order."""
    sums = np.zeros(n_keys, dtype=np.uint64)
    np.add.at(sums, keys, values)
    return sums


def _mixed(values: Colours) -> Colours:
    """Return well-spread functions of values (the finalizer of SplitMix64)."""
    mixed = values + _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _SECOND
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _THIRD
    return mixed ^ (mixed >> np.uint64(31))


def _is_renaming(names: Ints) -> bool:
    return np.array_equal(np.sort(names), np.arange(len(names)))


def _same(count: int) -> Ints:
    return np.arange(count, dtype=np.int32)


def _edges(problem: ExtractionProblem, nodes: Ints, classes: Ints) -> NDArray[np.int64]:
    """Return all (e-node, child class) pairs under other names, as sorted numbers."""
    owner = nodes[edge_owner(problem.child_ptr)].astype(np.int64)
    return np.sort(owner * problem.n_classes + classes[problem.child_idx])
