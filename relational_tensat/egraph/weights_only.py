"""Classes that depend on weights and constants only: known before inference, where they cost nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relational_tensat.egraph.egraph import EGraph
from relational_tensat.egraph.loading import CHILD_COLUMNS


def classes_of_weights(egraph: EGraph, *, hidden: bool = False) -> NDArray[np.intp]:
    """Return the ids of an e-graph's classes that can be had from weights only.

    Args:
        hidden: e-nodes that are not shown count, too.
    """
    rows = egraph.database.columns("egraph/foldable_nodes", hidden=hidden)
    children = np.stack([rows[f"c{i}"] for i in range(CHILD_COLUMNS)], axis=1)
    return weight_only_classes(rows["class"], children)


def weight_only_classes(owner: NDArray[np.int32], children: NDArray[np.int32]) -> NDArray[np.intp]:
    """Return the classes that can be had from weights only.

    Args:
        owner: of each foldable e-node, its class.
        children: of each, its child classes, 0 for none.
    """
    size = 1 + int(max(owner.max(initial=0), children.max(initial=0)))
    is_known = np.zeros(size, np.bool_)
    is_known[0] = True  # no operand
    while True:
        is_ready = is_known[children].all(axis=1)
        if not is_ready.any():
            break
        is_known[owner[is_ready]] = True
        owner, children = owner[~is_ready], children[~is_ready]
    return np.flatnonzero(is_known)[1:]
