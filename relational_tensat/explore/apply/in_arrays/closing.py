"""The e-graph closed under unions, in arrays: what ``egraph/rebuild`` does by statements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from relational_tensat.egraph.node_hashes import (
    Ints,
    Places,
    distinct,
    equal_rows,
    hash_columns,
)
from relational_tensat.explore.apply.in_arrays.nodes import Nodes


@dataclass
class Closed:
    """E-nodes when equal ones are one.

    Attributes:
        nodes: by now; their classes and children are canonical.
        canonical: by class that was canonical, which one it is by now.
        is_changed, is_dropped: by e-node, whether it was rewritten, and whether it is equal to another,
            which stays.
        merged: how many classes are in others now.
        congruent: the unions that equal e-nodes asked for, as pairs of classes: the lower ones, the higher
            ones, by round.
    """

    nodes: Nodes
    canonical: Ints
    is_changed: NDArray[np.bool_]
    is_dropped: NDArray[np.bool_]
    merged: int = 0
    congruent: list[tuple[Ints, Ints]] = field(default_factory=list)


def close(
    nodes: Nodes, lower: Ints, higher: Ints, classes: int, check: Callable[[], None]
) -> Closed:
    """Close e-nodes under unions of classes, round by round.

    Args:
        nodes: their columns are rewritten in place.
        lower, higher: canonical classes that become one.
        classes: the highest class.
        check: raises where this is to end.

    Raises:
        HashesCollideError: two different e-nodes have one number.
    """
    count = len(nodes.ids)
    closed = Closed(
        nodes, np.arange(classes + 1, dtype=np.int32), np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    )  # fmt: skip
    while len(lower):
        check()
        old, new = components(lower, higher)
        closed.merged += len(old)
        became = np.arange(classes + 1, dtype=np.int32)
        became[old] = new
        closed.canonical = became[closed.canonical]
        for column in (nodes.classes, *nodes.children):
            rewritten = became[column]
            closed.is_changed |= rewritten != column
            column[:] = rewritten
        check()
        equal = _equal_nodes(nodes)
        if not len(equal):
            break
        lower, higher = _congruent_unions(nodes, equal, closed)
        if len(lower):
            closed.congruent.append((lower, higher))
    return closed


def components(lower: Ints, higher: Ints) -> tuple[Ints, Ints]:
    """Return the classes of pairs that are not the lowest of their component, and the lowest of each."""
    classes, ends = np.unique(np.concatenate([lower, higher]), return_inverse=True)
    a, b = np.split(ends, 2)
    label = np.arange(len(classes))
    while True:
        a, b = label[a], label[b]
        apart = a != b
        if not apart.any():
            break
        a, b = np.minimum(a, b)[apart], np.maximum(a, b)[apart]
        np.minimum.at(label, b, a)
        while True:  # a label is a class's that has a lower one in its turn
            lowest = label[label]
            if (lowest == label).all():
                break
            label = lowest
    moved = np.flatnonzero(label != np.arange(len(classes)))
    return classes[moved], classes[label[moved]]


def _equal_nodes(nodes: Nodes) -> Places:
    """Return the places of e-nodes that have an equal one, or one of the same number."""
    hashes = hash_columns(nodes.columns)
    order = np.argsort(hashes)
    hashes = hashes[order]
    is_same = hashes[1:] == hashes[:-1]
    has_equal = np.zeros(len(order), np.bool_)
    has_equal[1:] = is_same
    has_equal[:-1] |= is_same
    return np.sort(order[has_equal])


def _congruent_unions(nodes: Nodes, equal: Places, closed: Closed) -> tuple[Ints, Ints]:
    """Return the unions that equal e-nodes ask for; where there are none, note which e-nodes are dropped.

    The oldest that the cycle filter kept stays; the oldest, if all are filtered.
    """
    columns = [column[equal] for column in nodes.columns]
    groups = equal_rows(hash_columns(columns), columns)
    classes = nodes.classes[equal]
    lowest = np.full(len(groups.first), np.iinfo(np.int32).max, np.int32)
    np.minimum.at(lowest, groups.of_row, classes)
    lower = lowest[groups.of_row]
    apart = np.flatnonzero(classes != lower)
    if len(apart):
        pairs = distinct(lower[apart].astype(np.int64) << 32 | classes[apart])
        return (pairs >> 32).astype(np.int32), (pairs & 0xFFFFFFFF).astype(np.int32)
    ages = nodes.ids[equal].astype(np.int64) + (nodes.is_filtered[equal].astype(np.int64) << 32)
    oldest = np.full(len(groups.first), np.iinfo(np.int64).max, np.int64)
    np.minimum.at(oldest, groups.of_row, ages)
    closed.is_dropped[equal] = ages != oldest[groups.of_row]
    none = np.zeros(0, np.int32)
    return none, none
