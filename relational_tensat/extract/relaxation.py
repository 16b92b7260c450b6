"""The linear relaxation of a piece, tightened by must rows, and what its duals rule out.

Spread thinly over many e-nodes, x pays for a class only as much as the largest of its parts needs;
over a few levels nothing is left. What every derivation of a class needs, the class needs in full:
over the e-nodes of class m that need class d in any case, the sum of x is at most y of d. There
are too many such rows; those that the relaxation violates are added until none is.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from relational_tensat.extract.formulation import Formulation
from relational_tensat.extract.index import nodes_by_class
from relational_tensat.extract.must import members_of, must_sets, node_needs
from relational_tensat.extract.problem import ExtractionProblem, Floats
from relational_tensat.extract.reduced import Mask
from relational_tensat.extract.solver import (
    Columns,
    LinearProgram,
    LpResult,
    Rows,
    SolverOptions,
    rows_of_lists,
    stack_rows,
)

_VIOLATION = 1e-6
_MAX_ROUNDS = 50
_LEAST_GAIN = 1e-4
"""Rounds end when the bound rises by less than this fraction of itself."""


@dataclass(frozen=True, eq=False)
class Relaxation:
    """A solved relaxation.

    Attributes:
        rows: those of the model and the must rows that were found.
        bound_us: proven lower bound.
        x: per e-node, how much of it the relaxation chooses.
        y: per class, likewise.
        reduced_cost_us: per e-node, by how much the bound rises at least if it is chosen.
    """

    rows: Rows
    bound_us: float
    x: Floats
    y: Floats
    reduced_cost_us: Floats

    def hopeless(self, cost_us: float) -> Mask:
        """Return the e-nodes that are in no choice cheaper than this."""
        return self.bound_us + self.reduced_cost_us >= cost_us


def relax(
    model: Formulation, rows: Rows, options: SolverOptions, cutoff_us: float
) -> Relaxation | None:
    """Solve the relaxation of a model; None where a limit came before any bound.

    Args:
        model: columns and scale.
        rows: its rows and cuts.
        options: limits.
        cutoff_us: a bound of this much is enough.
    """
    problem = model.problem
    program = LinearProgram(model.columns, rows, options)
    separator = _MustRows(problem)
    solved = program.solve()
    last = None
    for _ in range(_MAX_ROUNDS):
        if solved is None:
            break
        stalled = last is not None and solved.objective < last.objective * (1 + _LEAST_GAIN)
        last = solved
        if stalled or solved.objective >= cutoff_us * model.scale or options.exhausted:
            break
        found = separator.violated(solved)
        if found.count == 0:
            break
        rows = stack_rows([rows, found])
        program.add(found)
        solved = program.solve()
    if last is None:
        return None
    n = problem.n_nodes
    return Relaxation(
        rows=rows,
        bound_us=last.objective / model.scale,
        x=last.values[:n],
        y=last.values[n : n + problem.n_classes],
        reduced_cost_us=np.maximum(last.reduced_costs[:n], 0.0) / model.scale,
    )


def without(columns: Columns, nodes: Mask) -> Columns:
    """Return the columns with those of some e-nodes fixed at 0."""
    upper = columns.upper.copy()
    upper[: len(nodes)][nodes] = 0.0
    return Columns(columns.cost, columns.lower, upper, columns.integer)


class _MustRows:
    """Finds must rows that a point violates."""

    def __init__(self, problem: ExtractionProblem) -> None:
        self._problem = problem
        self._needs = node_needs(problem, must_sets(problem))
        self._nodes = nodes_by_class(problem)

    def violated(self, point: LpResult) -> Rows:
        """Return every must row that the point violates."""
        n = self._problem.n_nodes
        x, y = point.values[:n], point.values[n:]
        rows: list[tuple[list[int], list[float]]] = []
        for klass in np.flatnonzero(y[: self._problem.n_classes] > _VIOLATION).tolist():
            support: dict[int, float] = defaultdict(float)
            for node in self._nodes[klass]:
                if x[node] > _VIOLATION and self._needs[node]:
                    for need in members_of(self._needs[node]):
                        support[need] += x[node]
            for need, total in support.items():
                if total > y[need] + _VIOLATION:
                    nodes = [node for node in self._nodes[klass] if self._needs[node] >> need & 1]
                    rows.append(([*nodes, n + need], [*[1.0] * len(nodes), -1.0]))
        return rows_of_lists(rows, -np.inf, 0.0)
