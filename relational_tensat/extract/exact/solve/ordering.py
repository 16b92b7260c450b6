"""Topological variables: a number per class, larger than those of all that its e-node needs.

The papers give every class one. Only classes of one strongly connected component can be in a cycle,
so those outside need none; and within, a component of ``s`` classes needs only ``s`` numbers, which
makes the rows as much stronger as it is smaller than the e-graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from relational_tensat.extract.dependencies import strong_components_of_classes
from relational_tensat.extract.exact.solve.constraints import Columns, Rows, stack_rows
from relational_tensat.extract.exact.solve.formulation import Formulation, Order, rows_from_triples
from relational_tensat.extract.index import edge_owner
from relational_tensat.extract.problem import ExtractionProblem, Ints

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
