"""Rows against cycles.

If the classes U depend on one another in a cycle, any acyclic choice that needs a class of U takes
an e-node of some class of U that has no child in U: the choice must enter U from outside.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from relational_tensat.extract.dependencies import strong_components_of_classes
from relational_tensat.extract.exact.solve.constraints import Rows, rows_of_lists
from relational_tensat.extract.index import children_by_node, nodes_by_class
from relational_tensat.extract.problem import ExtractionProblem
from relational_tensat.extract.techniques import Gain, Technique, declare


def cycle_cuts(problem: ExtractionProblem, sets: list[list[int]]) -> Rows:
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


TWO_CYCLES = declare(
    Technique(
        "two-cycles",
        "rows against cycles of two classes",
        earns_on=Gain("rings 300", "simplex_iterations"),
    )
)


def two_cycle_rows(problem: ExtractionProblem) -> Rows:
    """Return rows against cycles of two classes, two per pair that may need each other.

    Either the e-node of a needs b, or that of b needs a, or neither: the sum over both kinds of
    e-nodes is at most y of a, and at most y of b.
    """
    component = strong_components_of_classes(problem)
    needing: dict[tuple[int, int], list[int]] = defaultdict(list)
    for node, part in enumerate(children_by_node(problem)):
        klass = int(problem.node_class[node])
        for child in part:
            if component[klass] == component[child]:
                needing[klass, child].append(node)
    rows: list[tuple[list[int], list[float]]] = []
    for (klass, child), nodes in needing.items():
        if klass < child and (child, klass) in needing:
            cycle_nodes = [*nodes, *needing[child, klass]]
            rows.extend(
                ([*cycle_nodes, problem.n_nodes + end], [*[1.0] * len(cycle_nodes), -1.0])
                for end in (klass, child)
            )
    return rows_of_lists(rows, -np.inf, 0.0)
