"""Extraction as an integer program: one binary per e-node, rows that say what a choice is.

``x`` (one column per e-node) says that the e-node is chosen, ``y`` (one per class) that its class
is; ``y`` is the sum of the class's ``x``. The papers' two ways to forbid cycles, topological
variables ``t`` per class, real or integer, are the columns after those.

A topological variable is a number per class, larger than those of all that its e-node needs. The papers
give every class one. Only classes of one strongly connected component can be in a cycle, so those outside
need no number. Within, a component of ``s`` classes needs only ``s`` numbers, which makes the rows as much
stronger as it is smaller than the e-graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from relational_tensat.extract.exact.solve.constraints import Columns, Rows, stack_rows
from relational_tensat.extract.index import edge_owner, strong_components_of_classes
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


LARGEST_ORDERED = 8
"""Classes of the largest component that has numbers; in larger ones cycles are cut where found.

Measured on planted e-graphs (60 and 150 e-nodes, 12 each kind, CPU seconds with cuts only, this
limit, numbers in all components): rings 2.68, 2.54, 2.58; zones 1.13, 1.23, 1.33; prices 0.58,
0.56, 0.56. Without the other rows against cycles: rings 4.39, 3.68, 3.48; zones 2.61, 3.44, 3.17.
"""

WITHIN: dict[str, Callable[[int], bool]] = {
    "auto": lambda size: size <= LARGEST_ORDERED,
    "order": lambda size: True,
    "cuts": lambda size: False,
}
"""How cycles within components are kept out: whether components of a size have numbers."""


def components_to_order(
    problem: ExtractionProblem, is_ordered: Callable[[int], bool]
) -> list[Ints]:
    """Return the classes of each strongly connected component that shall have numbers.

    Args:
        problem: the e-graph.
        is_ordered: whether a component of so many classes, at least two, shall.
    """
    component = np.array(strong_components_of_classes(problem), dtype=np.int32)
    by_component = np.argsort(component, kind="stable").astype(np.int32)
    sizes = np.bincount(component)
    ends = np.cumsum(sizes)
    return [
        by_component[end - size : end]
        for size, end in zip(sizes.tolist(), ends.tolist(), strict=True)
        if size > 1 and is_ordered(size)
    ]


def with_order(model: Formulation, components: list[Ints]) -> Formulation:
    """Return an integer program that has numbers, and rows that make them rise, in components.

    Over the e-nodes of class m that need class d of the same component of s classes, the sum of x
    is 1 only if t of m is at least t of d plus 1; t lies in 0 … s-1.

    Args:
        model: one without topological variables.
        components: disjoint, of at least two classes each.
    """
    if not components:
        return model
    classes = np.concatenate(components)
    sizes = [len(part) for part in components]
    group = np.repeat(np.arange(len(components), dtype=np.int32), sizes)
    highest = np.repeat(np.array(sizes, dtype=np.float64), sizes) - 1.0
    columns = model.columns
    count = len(classes)
    extended = Columns(
        np.concatenate([columns.cost, np.zeros(count)]),
        np.concatenate([columns.lower, np.zeros(count)]),
        np.concatenate([columns.upper, highest]),
        np.concatenate([columns.integer, np.zeros(count, dtype=np.bool_)]),
    )
    rows = _rising_rows(model.problem, classes, group, highest + 1.0, len(columns.cost))
    return replace(
        model,
        columns=extended,
        rows=stack_rows([model.rows, rows]),
        order=Order(classes, group, step=1.0),
    )


def _rising_rows(
    problem: ExtractionProblem,
    classes: Ints,
    group: Ints,
    size: NDArray[np.float64],
    first_column: int,
) -> Rows:
    """Return, per pair of classes m and d: t of m - t of d - s * (sum of x) >= 1 - s."""
    place = np.full(problem.n_classes, -1, dtype=np.int64)
    place[classes] = np.arange(len(classes))
    owner = edge_owner(problem.child_ptr)
    above, below = place[problem.node_class[owner]], place[problem.child_idx]
    inside = (above >= 0) & (below >= 0) & (above != below)
    inside[inside] = group[above[inside]] == group[below[inside]]
    owner, above, below = owner[inside], above[inside], below[inside]
    pairs, row = np.unique(above * len(classes) + below, return_inverse=True)
    above, below = pairs // len(classes), pairs % len(classes)
    row_index = np.arange(len(pairs))
    return rows_from_triples(
        np.concatenate([row, row_index, row_index]),
        np.concatenate([owner, first_column + above, first_column + below]),
        np.concatenate([-size[above[row]], np.ones(len(pairs)), -np.ones(len(pairs))]),
        1.0 - size[above],
        np.full(len(pairs), np.inf),
    )
