"""The linear relaxation of a piece, tightened by cuts, and what its duals rule out."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from relational_tensat.extract.formulation import Formulation
from relational_tensat.extract.landmarks import LandmarkCuts
from relational_tensat.extract.must_rows import MustRows
from relational_tensat.extract.problem import Floats
from relational_tensat.extract.reduced import Mask
from relational_tensat.extract.solver import (
    Columns,
    LinearProgram,
    LpResult,
    Rows,
    SolverOptions,
    stack_rows,
)

_WINDOW = 5
_LEAST_GAIN = 0.02
"""Cutting ends when ``_WINDOW`` rounds close less than this fraction of the gap."""

_TIGHT = 1e-6


@dataclass(frozen=True, eq=False)
class Relaxation:
    """A solved relaxation.

    Attributes:
        rows: those of the model, and the cuts that hold it up.
        bound_us: proven lower bound.
        reduced_cost_us: per e-node, by how much the bound rises at least if it is chosen.
    """

    rows: Rows
    bound_us: float
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
        rows: its rows, and others that every acyclic choice keeps to.
        options: limits.
        cutoff_us: a bound of this much is enough.
    """
    problem, scale = model.problem, model.scale
    n, n_classes = problem.n_nodes, problem.n_classes
    program = LinearProgram(model.columns, rows, options)
    families: list[MustRows | LandmarkCuts] = []
    if options.techniques.uses("must-rows"):
        families.append(MustRows(problem))
    if options.techniques.uses("landmarks"):
        families.append(LandmarkCuts(problem))
    blocks = [rows]
    history: deque[float] = deque(maxlen=_WINDOW + 1)
    last: LpResult | None = None
    solved = program.solve()
    while solved is not None:
        last = solved
        history.append(solved.objective)
        gap = cutoff_us * scale - solved.objective
        stalled = len(history) > _WINDOW and history[-1] - history[0] < _LEAST_GAIN * gap
        if gap <= 0 or stalled or options.exhausted:
            break
        x, y = solved.values[:n], solved.values[n : n + n_classes]
        cuts = [cuts.violated(x, y) for cuts in families]
        found = stack_rows(cuts) if cuts else None
        if found is None or found.count == 0:
            break
        program.add(found)
        blocks.append(found)
        solved = program.solve()
    if last is None:
        return None
    return Relaxation(
        rows=_supporting(stack_rows(blocks), rows.count, last),
        bound_us=last.objective / scale,
        reduced_cost_us=np.maximum(last.reduced_costs[:n], 0.0) / scale,
    )


def without(columns: Columns, nodes: Mask) -> Columns:
    """Return the columns with those of some e-nodes fixed at 0."""
    upper = columns.upper.copy()
    upper[: len(nodes)][nodes] = 0.0
    return Columns(columns.cost, columns.lower, upper, columns.integer)


def _supporting(rows: Rows, n_model: int, point: LpResult) -> Rows:
    """Return the model's rows, and of the cuts those that the point meets without slack."""
    known = len(point.row_values)
    values = point.row_values
    slack = np.minimum(rows.upper[:known] - values, values - rows.lower[:known])
    kept = slack <= _TIGHT
    kept[:n_model] = True
    return rows.select(np.flatnonzero(kept))
