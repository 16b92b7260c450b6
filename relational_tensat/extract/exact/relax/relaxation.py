"""The linear relaxation of a component, tightened by cuts, and what its duals rule out."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from relational_tensat.base.deadline import OutOfTimeError
from relational_tensat.extract.exact.reduce.reduced import Mask
from relational_tensat.extract.exact.relax.ascent import ASCENT, Ascent, LandmarkAscent
from relational_tensat.extract.exact.relax.landmarks import LANDMARKS, SCARCITY, LandmarkCuts
from relational_tensat.extract.exact.solve.constraints import (
    Columns,
    Rows,
    rows_of_lists,
    stack_rows,
)
from relational_tensat.extract.exact.solve.formulation import Formulation
from relational_tensat.extract.exact.solve.search import Search
from relational_tensat.extract.exact.solve.solver import LinearProgram, LpResult
from relational_tensat.extract.exact.solve.solver_options import SolverOptions
from relational_tensat.extract.greedy.bottom_up import DagDeriver, settle_by_tree_cost
from relational_tensat.extract.greedy.improve import Improver
from relational_tensat.extract.problem import ExtractionProblem, Floats
from relational_tensat.extract.techniques import Gain, Technique, declare

_WINDOW = 5
_LEAST_GAIN = 0.005
"""Cutting ends when ``_WINDOW`` rounds close less than this fraction of the gap."""

_TIGHT = 1e-6

ROUNDING = declare(
    Technique(
        "rounding",
        "derive choices from what the relaxation chooses",
        earns_on=Gain("zones 100", "branch_nodes"),
    )
)


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

    def excluded(self, cost_us: float) -> Mask:
        """Return the e-nodes that are in no choice of less than this cost."""
        return self.bound_us + self.reduced_cost_us >= cost_us


def relax(
    search: Search,
    model: Formulation,
    rows: Rows,
    options: SolverOptions,
) -> Relaxation | None:
    """Solve and tighten the relaxation of a model, and round what it says on the way.

    Args:
        search: of the model's e-graph; is updated with every bound and choice at once, as what comes
            after may be interrupted.
        model: columns and scale.
        rows: its rows, and others that every acyclic choice keeps to.
        options: limits.

    Returns:
        The relaxation; None where a limit came before any bound, or nothing is left to find.
    """
    cutting = _Cutting(search, model, options)
    with suppress(OutOfTimeError):
        cutting.run(rows)
    return cutting.relaxation(rows.count)


class _Cutting:
    """Rounds of solving the relaxation, looking at what it says, and adding cuts."""

    def __init__(self, search: Search, model: Formulation, options: SolverOptions) -> None:
        self._search, self._model, self._options = search, model, options
        self._tightening = _Tightening(model.problem, options)
        self._blocks: list[Rows] = []
        self._bounds: deque[float] = deque(maxlen=_WINDOW + 1)
        self._last: tuple[LpResult, float, Floats] | None = None

    def run(self, rows: Rows) -> None:
        """Continue until nothing is left to find, cuts do not pay any more, or a limit is met.

        Raises:
            OutOfTimeError: a limit was met within a round.
        """
        self._blocks = [rows, *self._tightening.seeds(self._search)]
        if self._search.closed:
            return
        program = LinearProgram(self._model.columns, stack_rows(self._blocks), self._options)
        solution = program.solve()
        while solution is not None:
            cuts = self._round(solution)
            if cuts is None or cuts.count == 0:
                return
            program.add(cuts)
            self._blocks.append(cuts)
            solution = program.solve()

    def relaxation(self, n_model: int) -> Relaxation | None:
        """Return the last relaxation that was solved, with the cuts that hold it up.

        Args:
            n_model: how many of the first rows are the model's.
        """
        if self._last is None:
            return None
        point, bound_us, rest_us = self._last
        return Relaxation(_supporting(stack_rows(self._blocks), n_model, point), bound_us, rest_us)

    def _round(self, solution: LpResult) -> Rows | None:
        """Take what a solved relaxation says; return cuts, or None where this is the end."""
        search, n = self._search, self._model.problem.n_nodes
        reduced_us = np.maximum(solution.reduced_costs[:n], 0.0) / self._model.scale
        ascent = self._tightening.ascend(reduced_us)
        bound_us = solution.objective / self._model.scale + ascent.bound
        self._last = (solution, bound_us, ascent.excess)
        search.raise_bound(bound_us)
        self._tightening.round(search, np.clip(solution.values[:n], 0.0, 1.0))
        self._bounds.append(bound_us)
        gain = self._bounds[-1] - self._bounds[0]
        is_long = len(self._bounds) > _WINDOW
        stalled = is_long and gain < _LEAST_GAIN * (search.cost_us - bound_us)
        if search.closed or stalled or self._options.exhausted:
            return None
        return self._tightening.cuts(solution, ascent)


class _Tightening:
    """What makes a relaxation of one e-graph better, as far as the techniques are used."""

    def __init__(self, problem: ExtractionProblem, options: SolverOptions) -> None:
        self._problem, self._options = problem, options
        uses = options.techniques.uses
        check = options.check
        self._ascent = LandmarkAscent(problem) if uses(ASCENT) else None
        self._deriver = DagDeriver(problem, check=check) if uses(ROUNDING) else None
        self._improver: Improver | None = None
        self._landmarks: LandmarkCuts | None = None
        if uses(LANDMARKS):
            follows_scarcity = uses(SCARCITY)
            self._landmarks = LandmarkCuts(problem, check, follows_scarcity=follows_scarcity)

    def seeds(self, search: Search) -> list[Rows]:
        """Return rows to begin with: the landmarks that ascents on the costs find."""
        rows = []
        weights = self._problem.cost_us
        for order in self._ascent.orders(weights) if self._ascent is not None else ():
            ascent = self.ascend(weights, order)
            search.raise_bound(ascent.bound)
            rows.append(landmark_rows(ascent))
        return rows

    def ascend(self, weights: Floats, order: list[int] | None = None) -> Ascent:
        """Return an ascent under some weights; where it is not used, an empty one.

        Args:
            weights: per e-node.
            order: the classes to ascend to; by default the last of the orders there are.
        """
        if self._ascent is None:
            return Ascent(0.0, [], weights, weights)
        targets = order or self._ascent.orders(weights)[-1]
        return self._ascent.ascend(weights, targets, lambda: self._options.exhausted)

    def round(self, search: Search, x: Floats) -> None:
        """Offer a choice that prefers what a point chooses, and what that is improved to in place."""
        if self._deriver is None:
            return
        choice = self._deriver.derive(self._problem.cost_us * (1.0 - x))
        search.offer(choice)
        if self._improver is None:
            by_tree_cost = settle_by_tree_cost(self._problem, None)
            self._improver = Improver(self._problem, *by_tree_cost, lambda: self._options.exhausted)
        search.offer(self._improver.improve(choice))

    def cuts(self, point: LpResult, ascent: Ascent) -> Rows:
        """Return rows that a point violates, and those of an ascent on its reduced costs."""
        n, n_classes = self._problem.n_nodes, self._problem.n_classes
        x, y = point.values[:n], point.values[n : n + n_classes]
        rows = landmark_rows(ascent)
        if self._landmarks is None:
            return rows
        return stack_rows([rows, self._landmarks.violated(x, y)])


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
    row_count = len(point.row_values)
    values = point.row_values
    slack = np.minimum(rows.upper[:row_count] - values, values - rows.lower[:row_count])
    is_kept = slack <= _TIGHT
    is_kept[:n_model] = True
    return rows.select(np.flatnonzero(is_kept))
