"""Linear constraints and columns as arrays, as HiGHS takes them.

Rows against cycles are among them. If the classes U depend on one another in a cycle, any acyclic choice
that needs a class of U takes an e-node of some class of U that has no child in U: the choice must enter U
from outside.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relational_tensat.extract.index import (
    children_by_node,
    nodes_by_class,
    strong_components_of_classes,
)
from relational_tensat.extract.problem import ExtractionProblem, Floats, Ints
from relational_tensat.extract.techniques import Technique, TechniqueGain, declare


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows ``lower <= A x <= upper`` with A in compressed sparse rows."""

    ptr: Ints
    idx: Ints
    val: Floats
    lower: Floats
    upper: Floats

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.lower)

    def select(self, indices: NDArray[np.intp]) -> Rows:
        """Return some of the rows."""
        sizes = np.diff(self.ptr)[indices]
        ends = np.cumsum(sizes)
        entries = np.arange(int(sizes.sum())) + np.repeat(
            self.ptr[:-1][indices] - (ends - sizes), sizes
        )
        return Rows(
            ptr=np.concatenate([[0], ends]).astype(np.int32),
            idx=self.idx[entries],
            val=self.val[entries],
            lower=self.lower[indices],
            upper=self.upper[indices],
        )


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of a minimisation: cost, bounds, and which must be integers."""

    cost: Floats
    lower: Floats
    upper: Floats
    integer: NDArray[np.bool_]


def stack_rows(blocks: list[Rows]) -> Rows:
    """Put row blocks under each other."""
    sizes = [0, *np.cumsum([len(block.idx) for block in blocks]).tolist()]
    pointers = [block.ptr[:-1] + size for block, size in zip(blocks, sizes[:-1], strict=True)]
    return Rows(
        ptr=np.concatenate([*pointers, np.array([sizes[-1]])]).astype(np.int32),
        idx=np.concatenate([block.idx for block in blocks]).astype(np.int32),
        val=np.concatenate([block.val for block in blocks]).astype(np.float64),
        lower=np.concatenate([block.lower for block in blocks]).astype(np.float64),
        upper=np.concatenate([block.upper for block in blocks]).astype(np.float64),
    )


def rows_of_lists(rows: list[tuple[list[int], list[float]]], lower: float, upper: float) -> Rows:
    """Build rows of equal bounds from (columns, coefficients) each."""
    sizes = [len(columns) for columns, _ in rows]
    return Rows(
        ptr=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32),
        idx=np.array([column for columns, _ in rows for column in columns], dtype=np.int32),
        val=np.array([value for _, values in rows for value in values], dtype=np.float64),
        lower=np.full(len(rows), lower),
        upper=np.full(len(rows), upper),
    )


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
        earns_on=TechniqueGain("rings 300", "simplex_iterations"),
    )
)


def two_cycle_rows(problem: ExtractionProblem) -> Rows:
    """Return rows against cycles of two classes, two per pair that may need each other.

    Either the e-node of a needs b, or that of b needs a, or neither. So the sum over both kinds of e-nodes
    is at most y of a, and at most y of b.
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
