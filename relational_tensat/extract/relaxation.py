"""The linear relaxation of a piece, tightened by cuts, and what its duals rule out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from relational_tensat.extract.ascent import Ascent, LandmarkAscent
from relational_tensat.extract.bottom_up import DagDeriver
from relational_tensat.extract.formulation import Formulation
from relational_tensat.extract.landmarks import LandmarkCuts
from relational_tensat.extract.must_rows import MustRows
from relational_tensat.extract.problem import ExtractionProblem, Floats
from relational_tensat.extract.reduced import Mask
from relational_tensat.extract.search import Search
from relational_tensat.extract.solver import (
    Columns,
    LinearProgram,
    LpResult,
    Rows,
    SolverOptions,
    rows_of_lists,
    stack_rows,
)

_WINDOW = 5
_LEAST_GAIN = 0.02
"""Cutting ends when ``_WINDOW`` rounds close less than this fraction of the gap."""

_ROUNDS_TO_IMPROVE = 4
"""From the first, every so many rounds of cutting the choice is improved locally."""

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
    search: Search,
    model: Formulation,
    rows: Rows,
    options: SolverOptions,
    improve: Callable[[Mask], None] | None = None,
) -> Relaxation | None:
    """Solve and tighten the relaxation of a model, and round what it says on the way.

    Args:
        search: of the model's e-graph; is told of every bound and choice at once, as what comes
            after may be interrupted.
        model: columns and scale.
        rows: its rows, and others that every acyclic choice keeps to.
        options: limits.
        improve: called now and then with the e-nodes of which any was chosen so far.

    Returns:
        The relaxation; None where a limit came before any bound, or nothing is left to find.
    """
    problem, scale = model.problem, model.scale
    n = problem.n_nodes
    tightening = _Tightening(problem, options)
    seeds = tightening.seeds(search)
    if search.closed:
        return None
    blocks = [rows, *seeds]
    program = LinearProgram(model.columns, stack_rows(blocks), options)
    history: deque[float] = deque(maxlen=_WINDOW + 1)
    touched = np.zeros(n, dtype=np.bool_)
    rounds = 0
    last: tuple[LpResult, float, Floats] | None = None
    solved = program.solve()
    while solved is not None:
        reduced_us = np.maximum(solved.reduced_costs[:n], 0.0) / scale
        ascent = tightening.ascend(reduced_us)
        bound_us = solved.objective / scale + ascent.bound
        last = (solved, bound_us, ascent.rest)
        touched |= solved.values[:n] > _TIGHT
        if improve is not None and rounds % _ROUNDS_TO_IMPROVE == 0 and not search.closed:
            improve(touched)
        rounds += 1
        search.raise_bound(bound_us)
        tightening.round(search, np.clip(solved.values[:n], 0.0, 1.0))
        history.append(bound_us)
        gap = search.cost_us - bound_us
        stalled = len(history) > _WINDOW and history[-1] - history[0] < _LEAST_GAIN * gap
        if search.closed or stalled or options.exhausted:
            break
        found = tightening.cuts(solved, ascent)
        if found.count == 0:
            break
        program.add(found)
        blocks.append(found)
        solved = program.solve()
    if last is None:
        return None
    point, bound_us, rest_us = last
    return Relaxation(_supporting(stack_rows(blocks), rows.count, point), bound_us, rest_us)


class _Tightening:
    """What makes a relaxation of one e-graph better, as far as the techniques are used."""

    def __init__(self, problem: ExtractionProblem, options: SolverOptions) -> None:
        self._problem, self._options = problem, options
        uses = options.techniques.uses
        self._ascent = LandmarkAscent(problem) if uses("ascent") else None
        self._deriver = DagDeriver(problem) if uses("rounding") else None
        self._families: list[MustRows | LandmarkCuts] = []
        if uses("must-rows"):
            self._families.append(MustRows(problem))
        if uses("landmarks"):
            self._families.append(LandmarkCuts(problem))

    def seeds(self, search: Search) -> list[Rows]:
        """Return rows to begin with: the landmarks that ascents on the costs come by."""
        rows = []
        weights = self._problem.cost_us
        for order in self._ascent.orders(weights) if self._ascent is not None else ():
            ascent = self.ascend(weights, order)
            search.raise_bound(ascent.bound)
            rows.append(landmark_rows(ascent))
        return rows

    def ascend(self, weights: Floats, order: list[int] | None = None) -> Ascent:
        """Return an ascent under some weights; where it is not used, one that comes to nothing.

        Args:
            weights: per e-node.
            order: the classes to ascend to; by default the last of the orders there are.
        """
        if self._ascent is None:
            return Ascent(0.0, [], weights)
        targets = order or self._ascent.orders(weights)[-1]
        return self._ascent.ascend(weights, targets, lambda: self._options.exhausted)

    def round(self, search: Search, x: Floats) -> None:
        """Offer a choice that prefers what a point chooses."""
        if self._deriver is not None:
            search.offer(self._deriver.derive(self._problem.cost_us * (1.0 - x)))

    def cuts(self, point: LpResult, ascent: Ascent) -> Rows:
        """Return rows that a point violates, and those of an ascent on its reduced costs."""
        n, n_classes = self._problem.n_nodes, self._problem.n_classes
        x, y = point.values[:n], point.values[n : n + n_classes]
        return stack_rows(
            [landmark_rows(ascent), *(family.violated(x, y) for family in self._families)]
        )


def landmark_rows(ascent: Ascent) -> Rows:
    """Return a row per landmark: at least one of its e-nodes is chosen."""
    return rows_of_lists([(mark, [1.0] * len(mark)) for mark in ascent.landmarks], 1.0, np.inf)


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
