"""Circles: where classes hold one another up, and the cuts that forbid it.

If the classes U hold one another up in a circle, any acyclic choice that needs a class of U takes
an e-node of some class of U that has no child in U: the choice must enter U from outside.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from relational_tensat.extract.exact.solve.solver import Rows, rows_of_lists
from relational_tensat.extract.index import children_by_node, edge_owner, nodes_by_class
from relational_tensat.extract.problem import UNUSED, ExtractionProblem, Ints


def strong_components(successors: Sequence[Sequence[int]]) -> list[int]:
    """Return, per vertex of a graph, the number of its strongly connected component (Tarjan)."""
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


def class_components(problem: ExtractionProblem) -> list[int]:
    """Return, per class, its strongly connected component among all needs of all e-nodes."""
    owner = edge_owner(problem.child_ptr)
    pairs = np.unique(
        problem.node_class[owner].astype(np.int64) * problem.n_classes + problem.child_idx
    )
    successors: list[list[int]] = [[] for _ in range(problem.n_classes)]
    for pair in pairs.tolist():
        successors[pair // problem.n_classes].append(pair % problem.n_classes)
    return strong_components(successors)


def circular_sets(problem: ExtractionProblem, choice: Ints) -> list[list[int]]:
    """Return the sets of classes that a choice makes into circles, as far as the root needs them.

    A class that needs itself is a circle of one.
    """
    seen = {problem.root}
    order = [problem.root]
    for klass in order:
        node = int(choice[klass])
        for child in problem.children(node).tolist() if node != UNUSED else ():
            if child not in seen:
                seen.add(child)
                order.append(child)
    number = {klass: position for position, klass in enumerate(order)}
    successors = [
        [number[child] for child in problem.children(int(choice[klass])).tolist()]
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


def loop_cuts(problem: ExtractionProblem, sets: list[list[int]]) -> Rows:
    """Return, per set U and class m of U: y of m is at most the sum of x that enter U."""
    nodes = nodes_by_class(problem)
    rows: list[tuple[list[int], list[float]]] = []
    for members in sets:
        inside = np.zeros(problem.n_classes, dtype=np.bool_)
        inside[members] = True
        entering = [
            node
            for klass in members
            for node in nodes[klass]
            if not inside[problem.children(node)].any()
        ]
        rows.extend(
            ([*entering, problem.n_nodes + klass], [*[1.0] * len(entering), -1.0])
            for klass in members
        )
    return rows_of_lists(rows, 0.0, np.inf)


def two_cycle_rows(problem: ExtractionProblem) -> Rows:
    """Return rows against circles of two classes, two per pair that may need each other.

    Either the e-node of a needs b, or that of b needs a, or neither: the sum over both kinds of
    e-nodes is at most y of a, and at most y of b.
    """
    component = class_components(problem)
    needing: dict[tuple[int, int], list[int]] = defaultdict(list)
    for node, part in enumerate(children_by_node(problem)):
        klass = int(problem.node_class[node])
        for child in part:
            if component[klass] == component[child]:
                needing[klass, child].append(node)
    rows: list[tuple[list[int], list[float]]] = []
    for (klass, child), nodes in needing.items():
        if klass < child and (child, klass) in needing:
            both = [*nodes, *needing[child, klass]]
            rows.extend(
                ([*both, problem.n_nodes + end], [*[1.0] * len(both), -1.0])
                for end in (klass, child)
            )
    return rows_of_lists(rows, -np.inf, 0.0)
