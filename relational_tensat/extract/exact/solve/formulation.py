"""Extraction as an integer program: one binary per e-node, rows that say what a choice is.

``x`` (one column per e-node) says that the e-node is chosen, ``y`` (one per class) that its class
is; ``y`` is the sum of the class's ``x``. The papers' two ways to forbid cycles, topological
variables ``t`` per class, real or integer, are the columns after those.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relational_tensat.extract.exact.solve.constraints import Columns, Rows, stack_rows
from relational_tensat.extract.index import edge_owner
from relational_tensat.extract.problem import (
    UNUSED,
    ExtractionProblem,
    Floats,
    Ints,
    topological_order,
)

_FREE = np.inf


@dataclass(frozen=True, eq=False)
class Order:
    """The topological variables of a formulation, its last columns.

    Attributes:
        classes: per variable, its class.
        group: per variable, which others it is compared with: those of the same group.
        step: by how much a class's variable exceeds that of the one before it.
    """

    classes: Ints
    group: Ints
    step: float


@dataclass(frozen=True, eq=False)
class Formulation:
    """Columns and rows of one e-graph.

    Attributes:
        problem: the e-graph.
        columns: x per e-node, y per class, and t per class that is in ``order``.
        rows: the constraints.
        scale: the objective is the cost in µs times this.
        order: the topological variables that forbid cycles, if there are any.
    """

    problem: ExtractionProblem
    columns: Columns
    rows: Rows
    scale: float
    order: Order | None = None

    def point(self, choice: Ints) -> Floats:
        """Return the values of all columns for an acyclic choice of the reduced e-graph."""
        problem = self.problem
        used_classes = np.array(topological_order(problem, choice))
        values = np.zeros(len(self.columns.cost))
        values[choice[used_classes]] = 1.0
        values[problem.n_nodes + used_classes] = 1.0
        if self.order is not None:
            values[problem.n_nodes + problem.n_classes :] = _heights(used_classes, self.order)
        return values

    def chosen(self, values: Floats) -> Ints:
        """Return the choice that a point stands for: rounded, the cheapest where two are picked."""
        problem = self.problem
        choice = np.full(problem.n_classes, UNUSED, dtype=np.int32)
        picked = np.flatnonzero(np.round(values[: problem.n_nodes]) >= 1).astype(np.int32)
        dearest_first = picked[np.argsort(-problem.cost_us[picked], kind="stable")]
        choice[problem.node_class[dearest_first]] = dearest_first
        return choice


def formulate(problem: ExtractionProblem, cycles: str, scale: float) -> Formulation:
    """Write the e-graph as an integer program.

    Args:
        problem: the e-graph.
        cycles: ``real`` or ``int`` adds the papers' topological variables over all classes;
            anything else leaves cycles to cuts.
        scale: factor on the costs.
    """
    has_order = cycles in ("real", "int")
    blocks = [_class_rows(problem), _child_rows(problem)]
    if has_order:
        blocks.append(_order_rows(problem, cycles))
    n_x, n_y = problem.n_nodes, problem.n_classes
    n_order = n_y if has_order else 0
    every_class = np.arange(n_y, dtype=np.int32)
    step = 1.0 if cycles == "int" else 1.0 / n_y
    order = Order(every_class, np.zeros_like(every_class), step) if has_order else None
    lower = np.zeros(n_x + n_y + n_order)
    upper = np.ones(n_x + n_y + n_order)
    lower[n_x + problem.root] = 1.0
    integer = np.zeros(n_x + n_y + n_order, dtype=np.bool_)
    integer[:n_x] = True
    if cycles == "int":
        upper[n_x + n_y :] = max(n_y - 1, 0)
        integer[n_x + n_y :] = True
    cost = np.zeros(n_x + n_y + n_order)
    cost[:n_x] = problem.cost_us * scale
    columns = Columns(cost, lower, upper, integer)
    return Formulation(problem, columns, stack_rows(blocks), scale, order)


def _heights(used_classes: Ints, order: Order) -> Floats:
    """Return the topological variables of classes used in this order, children first; else 0."""
    place = {klass: index for index, klass in enumerate(order.classes.tolist())}
    heights = np.zeros(len(order.classes))
    count: dict[int, int] = {}
    for klass in used_classes.tolist():
        index = place.get(klass)
        if index is not None:
            group = int(order.group[index])
            heights[index] = count.get(group, 0) * order.step
            count[group] = count.get(group, 0) + 1
    return heights


def _class_rows(problem: ExtractionProblem) -> Rows:
    """Sum of x over a class, minus its y, is 0."""
    n_x, n_y = problem.n_nodes, problem.n_classes
    row = np.concatenate([problem.node_class, np.arange(n_y)])
    column = np.arange(n_x + n_y)
    value = np.concatenate([np.ones(n_x), -np.ones(n_y)])
    return rows_from_triples(row, column, value, np.zeros(n_y), np.zeros(n_y))


def _child_rows(problem: ExtractionProblem) -> Rows:
    """Over the e-nodes of class m that need class d: the sum of x is at most y of d.

    At most one e-node of m is chosen, so one row stands for all of them (and is stronger than the
    papers' row per e-node).
    """
    owner = edge_owner(problem.child_ptr)
    pair = problem.node_class[owner].astype(np.int64) * problem.n_classes + problem.child_idx
    pairs, row = np.unique(pair, return_inverse=True)
    count = len(pairs)
    rows = np.concatenate([row, np.arange(count)])
    columns = np.concatenate([owner, problem.n_nodes + pairs % max(problem.n_classes, 1)])
    values = np.concatenate([np.ones(len(owner)), -np.ones(count)])
    return rows_from_triples(rows, columns, values, np.full(count, -_FREE), np.zeros(count))


def _order_rows(problem: ExtractionProblem, cycles: str) -> Rows:
    """t of the parent exceeds t of the child by a step wherever the e-node is chosen.

    TENSAT's forms: t in [0, 1] with step 1/(10 M) and big-M 2, or t integer below M classes with
    step 1 and big-M M. A self-loop gives x <= 0.
    """
    n_x, n_y = problem.n_nodes, problem.n_classes
    step, big = (1.0 / (10 * n_y), 2.0) if cycles == "real" else (1.0, float(n_y))
    owner = edge_owner(problem.child_ptr)
    parent = problem.node_class[owner]
    count = len(owner)
    edge = np.arange(count)
    loop = parent == problem.child_idx
    order = n_x + n_y
    rows = np.concatenate([edge, edge[~loop], edge[~loop]])
    columns = np.concatenate([owner, order + parent[~loop], order + problem.child_idx[~loop]])
    n_plain = int((~loop).sum())
    values = np.concatenate([np.full(count, -big), np.ones(n_plain), -np.ones(n_plain)])
    return rows_from_triples(
        rows, columns, values, np.full(count, step - big), np.full(count, _FREE)
    )


def rows_from_triples(
    row: np.ndarray, column: np.ndarray, value: Floats, lower: Floats, upper: Floats
) -> Rows:
    """Build compressed rows from (row, column, value) triples; no pair occurs twice."""
    order = np.lexsort((column, row))
    counts = np.bincount(row, minlength=len(lower))
    return Rows(
        ptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        idx=column[order].astype(np.int32),
        val=value[order].astype(np.float64),
        lower=lower,
        upper=upper,
    )
