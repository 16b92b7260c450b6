"""Required rows: what every derivation of a class needs, the class needs in full.

Over the e-nodes of class m that need class d in any case, the sum of x is at most y of d. There
are too many such rows to write them all down, so they are found where they are violated.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from relational_tensat.base.deadline import Check, unlimited
from relational_tensat.extract.exact.reduce.required_classes import (
    members_of,
    node_needs,
    required_classes,
)
from relational_tensat.extract.exact.solve.constraints import Rows, rows_of_lists
from relational_tensat.extract.index import nodes_by_class
from relational_tensat.extract.problem import ExtractionProblem, Floats
from relational_tensat.extract.techniques import Gain, Technique, declare

_VIOLATION = 1e-6

REQUIRED_ROWS = declare(
    Technique(
        "required-rows",
        "rows for classes that come with others",
        earns_on=Gain("zones 500", "simplex_iterations"),
    )
)


class RequiredRows:
    """Finds required rows of one e-graph that a point violates."""

    def __init__(self, problem: ExtractionProblem, check: Check = unlimited) -> None:
        self._n_nodes = problem.n_nodes
        self._check = check
        self._needs = node_needs(problem, required_classes(problem, check), check)
        self._nodes = nodes_by_class(problem)

    def violated(self, x: Floats, y: Floats) -> Rows:
        """Return every required row that the point violates.

        Args:
            x: per e-node, how much of it is chosen.
            y: per class, likewise.
        """
        rows: list[tuple[list[int], list[float]]] = []
        for klass in np.flatnonzero(y > _VIOLATION).tolist():
            self._check()
            support: dict[int, float] = defaultdict(float)
            for node in self._nodes[klass]:
                if x[node] > _VIOLATION and self._needs[node]:
                    for need in members_of(self._needs[node]):
                        support[need] += x[node]
            for need, total in support.items():
                if total > y[need] + _VIOLATION:
                    nodes = [node for node in self._nodes[klass] if self._needs[node] >> need & 1]
                    column = self._n_nodes + need
                    rows.append(([*nodes, column], [*[1.0] * len(nodes), -1.0]))
        return rows_of_lists(rows, -np.inf, 0.0)
