"""The cycle filter: keep the e-graph of unfiltered e-nodes acyclic (TENSAT section 5.2).

Every class has a height label above those of its kept children. Most iterations violate no label and
cost one query. Where labels are violated, cycles are looked for only between the lowest class violated
and the highest offending child. An e-node that closes a cycle with older ones is filtered, so the original
graph always stays. Then, without cycles, the labels are lifted, for which the e-nodes a step above are
enough, as a rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relational_tensat.egraph.cycle_search import cycle_breakers
from relational_tensat.egraph.database import Database
from relational_tensat.egraph.lifting import lifted_labels

#: Gap between the labels of a node and its operands in the original graph. Rewritten forms of a class
#: fit below it without lifting the classes above.
HEIGHT_STEP = 4096


def filter_cycles(database: Database) -> int:
    """Filter e-nodes until the kept ones are acyclic; return how many were filtered."""
    with database.stopwatch.phase("filter cycles"):
        return _filter_cycles(database)


def _filter_cycles(database: Database) -> int:
    count, low, high = database.run("violations")[0]
    if not count:
        return 0
    top = high + HEIGHT_STEP
    edges = database.columns("cycle_edges", low=low, high=top)
    low_enough = (edges["height"] <= high) & (edges["child_height"] <= high)
    filtered = cycle_breakers(_only(edges, low_enough), database.check_interrupt)
    if filtered:
        database.run("filter_cycles", enodes=filtered)
        edges = _only(edges, ~np.isin(edges["enode"], filtered))
    classes, heights = lifted_labels(edges, database.check_interrupt)
    while len(classes) and heights.max() > top:  # what lies above may have to give way, too
        top = int(heights.max()) + HEIGHT_STEP
        edges = database.columns("cycle_edges", low=low, high=top)
        classes, heights = lifted_labels(edges, database.check_interrupt)
    if len(classes):
        database.run("raise_heights", classes=classes, heights=heights)
    return len(filtered)


def _only(edges: Mapping[str, NDArray[Any]], wanted: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
    """Return the edges that are wanted, by column."""
    return {name: column[wanted] for name, column in edges.items()}


def reject_cyclic_applications(database: Database, leaves: int) -> int:
    """Drop the rows of ``application`` that would close a cycle; return how many.

    Args:
        leaves: how many of an application's bindings are its first match's.
    """
    with database.stopwatch.phase("filter cycles"):
        return database.change("reject_cyclic", leaves=leaves)
