"""The structure of an e-graph: classes to their e-nodes and users, and classes that depend on one another.

Lists of a whole e-graph are made once, and kept as long as it lives: it never changes, and reductions ask
for them again and again.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from relational_tensat.extract.problem import UNUSED, ExtractionProblem, Ints

#: Per class or e-node, the e-nodes or classes that stand to it as asked for. Not to be changed.
Adjacency: TypeAlias = Sequence[Sequence[int]]

_Lists = TypeVar("_Lists")


def _made_once(
    make: Callable[[ExtractionProblem], _Lists],
) -> Callable[[ExtractionProblem], _Lists]:
    cached: WeakKeyDictionary[ExtractionProblem, _Lists] = WeakKeyDictionary()

    @wraps(make)
    def remembered(problem: ExtractionProblem) -> _Lists:
        lists = cached.get(problem)
        if lists is None:
            lists = cached[problem] = make(problem)
        return lists

    return remembered


def edge_owner(child_ptr: Ints) -> Ints:
    """Return, per entry of ``child_idx``, the e-node that it belongs to."""
    return np.repeat(np.arange(len(child_ptr) - 1, dtype=np.int32), np.diff(child_ptr))


def group(keys: Ints, values: Ints, n_keys: int) -> list[list[int]]:
    """Return, per key 0 … n_keys-1, the values that stand at it, in their given order."""
    order = np.argsort(keys, kind="stable")
    ordered = values[order].tolist()
    starts = np.searchsorted(keys[order], np.arange(n_keys + 1)).tolist()
    return [ordered[starts[k] : starts[k + 1]] for k in range(n_keys)]


@_made_once
def nodes_by_class(problem: ExtractionProblem) -> Adjacency:
    """Return the e-nodes of every class."""
    nodes = np.arange(problem.n_nodes, dtype=np.int32)
    return group(problem.node_class, nodes, problem.n_classes)


@_made_once
def parents_by_class(problem: ExtractionProblem) -> Adjacency:
    """Return, per class, the e-nodes that have it as a child."""
    return group(problem.child_idx, edge_owner(problem.child_ptr), problem.n_classes)


@_made_once
def children_by_node(problem: ExtractionProblem) -> Adjacency:
    """Return the child classes of every e-node as lists."""
    flat, ends = problem.child_idx.tolist(), problem.child_ptr.tolist()
    return [flat[ends[node] : ends[node + 1]] for node in range(problem.n_nodes)]


@_made_once
def child_sets(problem: ExtractionProblem) -> Sequence[frozenset[int]]:
    """Return the child classes of every e-node as sets."""
    return [frozenset(part) for part in children_by_node(problem)]


@_made_once
def derivations(problem: ExtractionProblem) -> Mapping[int, int]:
    """Return every derivable class and the e-node that derives it first, children first."""
    return derivations_by(problem, np.ones(problem.n_nodes, dtype=np.bool_))


def derivations_by(problem: ExtractionProblem, usable: NDArray[np.bool_]) -> dict[int, int]:
    """Return the same by e-nodes that may be used."""
    missing_count = np.diff(problem.child_ptr).tolist()
    is_usable = usable.tolist()
    node_class = problem.node_class.tolist()
    users = parents_by_class(problem)
    derived: dict[int, int] = {}
    ready = deque(
        node for node, count in enumerate(missing_count) if count == 0 and is_usable[node]
    )
    while ready:
        node = ready.popleft()
        klass = node_class[node]
        if klass in derived:
            continue
        derived[klass] = node
        for user in users[klass]:
            missing_count[user] -= 1
            if missing_count[user] == 0 and is_usable[user]:
                ready.append(user)
    return derived


def strong_components(successors: Sequence[Sequence[int]]) -> list[int]:
    """Return, per vertex of a graph, the index of its strongly connected component (Tarjan)."""
    count = len(successors)
    index, low, component = [-1] * count, [0] * count, [-1] * count
    entered: list[int] = []
    clock = n_components = 0
    for start in range(count):
        if index[start] >= 0:
            continue
        work = [(start, 0)]
        while work:
            vertex, position = work.pop()
            if position == 0:
                index[vertex] = low[vertex] = clock
                clock += 1
                entered.append(vertex)
            else:
                low[vertex] = min(low[vertex], low[successors[vertex][position - 1]])
            for offset in range(position, len(successors[vertex])):
                target = successors[vertex][offset]
                if index[target] < 0:
                    work.append((vertex, offset + 1))
                    work.append((target, 0))
                    break
                if component[target] < 0:
                    low[vertex] = min(low[vertex], index[target])
            else:
                if low[vertex] == index[vertex]:
                    while component[vertex] < 0:
                        component[entered.pop()] = n_components
                    n_components += 1
    return component


def strong_components_of_classes(problem: ExtractionProblem) -> list[int]:
    """Return, per class, its strongly connected component among all needs of all e-nodes."""
    owner = edge_owner(problem.child_ptr)
    pairs = np.unique(
        problem.node_class[owner].astype(np.int64) * problem.n_classes + problem.child_idx
    )
    successors: list[list[int]] = [[] for _ in range(problem.n_classes)]
    for pair in pairs.tolist():
        successors[pair // problem.n_classes].append(pair % problem.n_classes)
    return strong_components(successors)


def cyclic_sets(problem: ExtractionProblem, choice: Ints) -> list[list[int]]:
    """Return the sets of classes that a choice makes cyclic, as far as the root needs them.

    A class that needs itself is a cycle of one.
    """
    reached = {problem.root}
    order = [problem.root]
    for klass in order:
        node = int(choice[klass])
        for child in problem.children(node).tolist() if node != UNUSED else ():
            if child not in reached:
                reached.add(child)
                order.append(child)
    place = {klass: position for position, klass in enumerate(order)}
    successors = [
        [place[child] for child in problem.children(int(choice[klass])).tolist()]
        if choice[klass] != UNUSED
        else []
        for klass in order
    ]
    members: dict[int, list[int]] = defaultdict(list)
    for position, component in enumerate(strong_components(successors)):
        members[component].append(position)
    return [
        sorted(order[position] for position in part)
        for part in members.values()
        if len(part) > 1 or part[0] in successors[part[0]]
    ]
