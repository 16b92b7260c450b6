"""The unions that applications ask for: the class of each target's root joins that of its source."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.records import record
from relational_tensat.egraph.node_hashes import Ints, Places
from relational_tensat.explore.apply.in_arrays.building import Building


@record
class AskedUnions:
    """Pairs of classes, each once.

    Attributes:
        lower, higher: the classes.
        places: which application is the reason: the first.
        sources: which of its sources.
    """

    lower: Ints
    higher: Ints
    places: Places
    sources: NDArray[np.int64]


def asked_unions(building: Building) -> AskedUnions:
    """Return the unions that applications ask for, as ``targets.unions_text`` says, by their reasons."""
    every = np.arange(building.found.count)
    pairs: list[NDArray[np.int64]] = []
    reasons: list[NDArray[np.int64]] = []
    sources = len(building.found.roots)
    for source in range(sources):
        positions = building.root_positions(source)
        targets = building.bindings[positions, every]
        roots = building.found.roots[source]
        at = np.flatnonzero((positions > 0) & (targets != roots) & (roots > 0))
        low = np.minimum(targets[at], roots[at]).astype(np.int64)
        pairs.append(low << 32 | np.maximum(targets[at], roots[at]))
        reasons.append(sources * at + source)
    pair, reason = np.concatenate(pairs), np.concatenate(reasons)
    order = np.argsort(pair)
    in_order = pair[order]
    starts = np.flatnonzero(np.concatenate([[True], in_order[1:] != in_order[:-1]])[: len(pair)])
    first = np.minimum.reduceat(reason[order], starts) if len(starts) else reason
    by_reason = np.argsort(first)
    pair, first = in_order[starts][by_reason], first[by_reason]
    lower, higher = (pair >> 32).astype(np.int32), (pair & 0xFFFFFFFF).astype(np.int32)
    places: Places = first // sources
    return AskedUnions(lower, higher, places, first % sources)
