"""Which classes depend on one another: strongly connected components, of an e-graph and of a choice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from relational_tensat.extract.index import edge_owner
from relational_tensat.extract.problem import UNUSED, ExtractionProblem, Ints


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
