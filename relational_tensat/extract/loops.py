"""Cuts for choices that rest on themselves.

If the classes U hold one another up in a circle, any acyclic choice that needs a class of U takes
an e-node of some class of U that has no child in U: the choice must enter U from outside.
"""

from __future__ import annotations

import numpy as np

from relational_tensat.extract.index import nodes_by_class
from relational_tensat.extract.problem import UNUSED, ExtractionProblem, Ints
from relational_tensat.extract.solver import Rows, rows_of_lists


def circular_sets(problem: ExtractionProblem, choice: Ints) -> list[list[int]]:
    """Return the strongly connected sets of classes of a choice that are circles.

    Only classes that the root reaches count; a class that needs itself is a circle of one.
    """
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    open_classes: list[int] = []
    is_open: set[int] = set()
    found: list[list[int]] = []
    work: list[tuple[int, list[int]]] = []

    def enter(klass: int) -> None:
        index[klass] = low[klass] = len(index)
        open_classes.append(klass)
        is_open.add(klass)
        node = int(choice[klass])
        work.append((klass, problem.children(node).tolist() if node != UNUSED else []))

    enter(problem.root)
    while work:
        klass, rest = work[-1]
        if rest:
            child = rest.pop()
            if child not in index:
                enter(child)
            elif child in is_open:
                low[klass] = min(low[klass], index[child])
            continue
        work.pop()
        if work:
            low[work[-1][0]] = min(low[work[-1][0]], low[klass])
        if low[klass] == index[klass]:
            start = open_classes.index(klass) if klass != open_classes[-1] else -1
            members = open_classes[start:]
            del open_classes[start:]
            is_open.difference_update(members)
            node = int(choice[klass])
            if len(members) > 1 or (node != UNUSED and klass in problem.children(node)):
                found.append(sorted(members))
    return found


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
