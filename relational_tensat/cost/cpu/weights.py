"""Where an operator of a graph finds its weights: in the L2 cache, in the L3 cache, or in main memory.

Weights of a small graph stay in the L2 cache from one run to the next. Those of a larger one are fetched
from the L3 cache, which others use, too, and where that has no room left for them, from main memory: a
product of 32 rows with a matrix of 2.4 MB took 153 us from the one and 240 us from the other (285 in a
graph of 42 MB; AMD EPYC, 2026-11-24).
"""

from __future__ import annotations

from collections.abc import Callable

from relational_tensat.cost.cpu.prepared import MOST_BYTES, leave_caches
from relational_tensat.cost.cpu.processor import l2_bytes, l3_bytes
from relational_tensat.cost.cpu.sampling import Evictor

#: Places; what a device is called after them. The L3 cache is where those of most graphs are.
IN_L2, IN_L3, IN_MEMORY = "in L2", "", "in memory"
#: Weights of this part of the L2 cache stay there, with the activations.
_STAY_IN_L2 = 0.5
#: Of the L3 cache, which several cores share, and other graphs.
_STAY_IN_L3 = 0.25


def place_of(weights_bytes: int) -> str:
    """Return where a graph finds so many bytes of weights."""
    if weights_bytes <= _STAY_IN_L2 * l2_bytes():
        return IN_L2
    return IN_MEMORY if weights_bytes > _STAY_IN_L3 * l3_bytes() else IN_L3


def displacer(place: str) -> Callable[[], None]:
    """Return what brings the caches into the state in which weights are there."""
    if place == IN_L2:
        return leave_caches
    return Evictor(l2_bytes() if place == IN_L3 else l3_bytes() // 2)


def most_bytes(place: str) -> int:
    """Return how many bytes of operands may be measured at once there."""
    return l2_bytes() if place == IN_L2 else MOST_BYTES
