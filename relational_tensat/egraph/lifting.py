"""Lifting height labels where e-nodes are not above their children, once there are no cycles."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from relational_tensat.egraph.components import Adjacency

Ints = NDArray[np.int32]


def lifted_labels(
    columns: Mapping[str, Ints], check: Callable[[], None]
) -> tuple[Ints, NDArray[np.int64]]:
    """Return the classes whose labels must rise, and the lowest labels that are above all children's.

    Labels rise from the e-nodes that break them upwards, all that are as far from these in one round.

    Args:
        columns: the edges, as ``cycle_breakers`` takes them, without a cycle: all between classes from the
            lowest that breaks a label up to a height. If no label rises above that, it is all.
        check: raises where the search is to end.
    """
    classes, flat = np.unique(
        np.concatenate([columns["class"], columns["child"]]), return_inverse=True
    )
    parent, child = np.split(flat, 2)
    label = np.zeros(len(classes), dtype=np.int64)
    label[parent], label[child] = columns["height"], columns["child_height"]
    before = label.copy()
    edges = Adjacency(child, parent, len(classes))
    below, above = child, parent
    while True:
        check()
        wanted = label[below] + 1
        rises = wanted > label[above]
        if not rises.any():
            break
        np.maximum.at(label, above[rises], wanted[rises])
        below, above = edges.following(np.unique(above[rises]))
    moved = label > before
    return classes[moved], label[moved]
