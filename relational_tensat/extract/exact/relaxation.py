"""The linear relaxation of a component, tightened by cuts, and what its duals rule out.

It begins with *dual ascent*: a bound made of landmarks that share no cost, and the costs that are left. As
LM-cut does in planning: ``h`` of a class is the weight of its cheapest derivation if of all
children only the costliest had to be paid. Search from the root along the operands, over e-nodes of
weight 0, each to its costliest child. Every acyclic choice takes an e-node that enters this zone:
one of a class in the zone, with no child in the zone. The least weight among those is added to the
bound and taken off each of them, and so on until ``h`` of the root is 0.

The sum is a bound: of the weight of any choice, every landmark used up its own part.

Where the root has one e-node, every choice derives all of its children, so each may stand in for the root.
If they depend on one another, the zone around the last of them is wide. It holds few landmarks of the
e-nodes that make the others. One after the other, more are found. No rule says which order gives the
highest bound, and landmarks of all orders serve as rows.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from relational_tensat.base.deadline import OutOfTimeError
from relational_tensat.extract.exact.landmarks import LANDMARKS, SCARCITY, LandmarkCuts
from relational_tensat.extract.exact.reduce.smaller_problem import Mask
from relational_tensat.extract.exact.solve.constraints import (
    Columns,
    Rows,
    rows_of_lists,
    stack_rows,
)
from relational_tensat.extract.exact.solve.formulation import Formulation
from relational_tensat.extract.exact.solve.search import Search, SolverOptions
from relational_tensat.extract.exact.solve.solver import LinearProgram, LpResult
from relational_tensat.extract.greedy.bottom_up import DagDeriver, settle_by_tree_cost
from relational_tensat.extract.greedy.improve import Improver
from relational_tensat.extract.index import children_by_node, nodes_by_class, parents_by_class
from relational_tensat.extract.problem import ExtractionProblem, Floats
from relational_tensat.extract.techniques import Technique, TechniqueGain, declare

_INFINITE = float("inf")
_TINY = 1e-9
"""Weights below this fraction of the largest are taken as nothing."""

ASCENT = declare(
    Technique(
        "ascent",
        "landmarks that share no cost: a bound without solver, and rows to begin with",
        earns_on=TechniqueGain("zones 100", "simplex_iterations"),
    )
)


@dataclass(frozen=True, eq=False)
class Ascent:
    """The result of an ascent.

    Attributes:
        bound: no acyclic choice weighs less.
        landmarks: sets of e-nodes of which every choice takes one.
        excess: per e-node, by how much more than the bound a choice with it weighs at least.
        rest: per e-node, the weight that the landmarks have left.
    """

    bound: float
    landmarks: list[list[int]]
    excess: Floats
    rest: Floats


class LandmarkAscent:
    """Ascends over one e-graph, under any weights of its e-nodes."""

    def __init__(self, problem: ExtractionProblem) -> None:
        self._problem = problem
        self._children = children_by_node(problem)
        self._nodes = nodes_by_class(problem)
        self._users = parents_by_class(problem)
        self._owner: list[int] = problem.node_class.tolist()

    def orders(self, weights: Floats) -> list[list[int]]:
        """Return orders of classes to ascend to: the root; its children, costliest last and first."""
        root = self._problem.root
        if len(self._nodes[root]) != 1:
            return [[root]]
        costliest = self._dearest(weights.tolist())
        required = sorted(self._children[self._nodes[root][0]], key=costliest.__getitem__)
        if len(required) < 2:
            return [[root]]
        return [[root], [*required, root], [*reversed(required), root]]

    def ascend(
        self,
        weights: Floats,
        targets: list[int] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Ascent:
        """Return a bound on what a choice weighs.

        Args:
            weights: per e-node, not negative.
            targets: classes that every choice contains, to ascend to in this order, the root last;
                by default only the root.
            stop: asked between landmarks; True ends the ascent with what is there.
        """
        tiny = _TINY * float(weights.max(initial=0.0))
        weight: list[float] = np.where(weights > tiny, weights, 0.0).tolist()
        costliest = self._dearest(weight)
        bound = 0.0
        landmarks: list[list[int]] = []
        for target in targets or [self._problem.root]:
            while tiny < costliest[target] < _INFINITE and not (stop is not None and stop()):
                landmark = self._landmark(target, weight, costliest)
                least = min(weight[node] for node in landmark)
                bound += least
                landmarks.append(landmark)
                for node in landmark:
                    remainder = weight[node] - least
                    weight[node] = remainder if remainder > tiny else 0.0
                self._lower(landmark, weight, costliest)
        return Ascent(bound, landmarks, self._excess(weight, costliest), np.array(weight))

    def _dearest(self, weight: list[float]) -> list[float]:
        """Return ``h`` of every class (Dijkstra over e-nodes whose last child was settled)."""
        heights = [_INFINITE] * self._problem.n_classes
        missing_count = [len(part) for part in self._children]
        queue = [(weight[n], self._owner[n]) for n, count in enumerate(missing_count) if count == 0]
        heapq.heapify(queue)
        while queue:
            value, klass = heapq.heappop(queue)
            if value >= heights[klass]:
                continue
            heights[klass] = value
            for user in self._users[klass]:
                missing_count[user] -= 1
                if missing_count[user] == 0 and weight[user] + value < heights[self._owner[user]]:
                    heapq.heappush(queue, (weight[user] + value, self._owner[user]))
        return heights

    def _landmark(self, target: int, weight: list[float], costliest: list[float]) -> list[int]:
        """Return the e-nodes that enter the zone which free e-nodes connect with a class."""
        zone = {target}
        stack = [target]
        paid: list[int] = []
        while stack:
            for node in self._nodes[stack.pop()]:
                if weight[node] > 0.0:
                    paid.append(node)
                    continue
                child = max(self._children[node], key=costliest.__getitem__)
                if child not in zone:
                    zone.add(child)
                    stack.append(child)
        return [node for node in paid if zone.isdisjoint(self._children[node])]

    def _lower(self, nodes: list[int], weight: list[float], costliest: list[float]) -> None:
        """Lower ``h`` in place after the weights of some e-nodes fell."""
        children, owner = self._children, self._owner
        queue: list[tuple[float, int]] = []
        for node in nodes:
            value = weight[node] + max([costliest[child] for child in children[node]], default=0.0)
            if value < costliest[owner[node]]:
                queue.append((value, owner[node]))
        heapq.heapify(queue)
        while queue:
            value, klass = heapq.heappop(queue)
            if value >= costliest[klass]:
                continue
            costliest[klass] = value
            for user in self._users[klass]:
                part = children[user]
                above = weight[user] + (
                    value if len(part) == 1 else max([costliest[child] for child in part])
                )
                if above < costliest[owner[user]]:
                    heapq.heappush(queue, (above, owner[user]))

    def _excess(self, weight: list[float], costliest: list[float]) -> Floats:
        """Return, per e-node, its own weight and ``h`` of its costliest child: both are in addition."""
        return np.array(
            [
                own + max([costliest[child] for child in part], default=0.0)
                for own, part in zip(weight, self._children, strict=True)
            ]
        )


_WINDOW = 5
_LEAST_GAIN = 0.005
"""Cutting ends when ``_WINDOW`` rounds close less than this fraction of the gap."""

_TIGHT = 1e-6

ROUNDING = declare(
    Technique(
        "rounding",
        "derive choices from what the relaxation chooses",
        earns_on=TechniqueGain("zones 100", "branch_nodes"),
    )
)


@dataclass(frozen=True, eq=False)
class Relaxation:
    """A solved relaxation.

    Attributes:
        rows: those of the model, and the cuts that hold it up.
        bound_us: proven lower bound.
        reduced_cost_us: per e-node, by how much the bound rises at least if it is chosen.
        taken: per e-node, how much of it the relaxation takes, 0 to 1.
    """

    rows: Rows
    bound_us: float
    reduced_cost_us: Floats
    taken: Floats

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
        rows = _supporting(stack_rows(self._blocks), n_model, point)
        taken = np.clip(point.values[: self._model.problem.n_nodes], 0.0, 1.0)
        return Relaxation(rows, bound_us, rest_us, taken)

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
    """The ways to better a relaxation of one e-graph, as far as the techniques are used."""

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
