"""All reductions, one after the other, until the e-graph stays as it is."""

from __future__ import annotations

from collections.abc import Callable

from relational_tensat.extract.bottom_up import DagDeriver
from relational_tensat.extract.dropping import (
    drop_dearer_than_derivation,
    drop_dominated,
    drop_self_loops,
    drop_underivable,
    drop_unreachable,
)
from relational_tensat.extract.inlining import (
    inline_free_classes,
    inline_single_free,
    merge_single_parents,
)
from relational_tensat.extract.must import drop_by_must
from relational_tensat.extract.problem import ExtractionProblem
from relational_tensat.extract.reduced import Reduced, unreduced

Reduction = Callable[[Reduced], Reduced]


def drop_dear(reduced: Reduced) -> Reduced:
    """Drop e-nodes dearer than the whole greedy derivation of their class."""
    upper = DagDeriver(reduced.problem).derivation_costs(reduced.problem.cost_us)
    return drop_dearer_than_derivation(reduced, upper)


REDUCTIONS: dict[str, Reduction] = {
    "unreachable": drop_unreachable,
    "underivable": drop_underivable,
    "self-loops": drop_self_loops,
    "free-classes": inline_free_classes,
    "single-free": inline_single_free,
    "dominated": drop_dominated,
    "single-parents": merge_single_parents,
    "dear": drop_dear,
    "must": drop_by_must,
}
"""The reductions by name, in the order of their use: cheap ones first."""

_DEAR = ("dear", "must")
_MAX_ROUNDS = 10


def reduce(problem: ExtractionProblem, stop: Callable[[], bool] | None = None) -> Reduced:
    """Return a smaller e-graph with an optimum that lifts to one of this e-graph.

    Args:
        problem: an e-graph whose root has an acyclic derivation.
        stop: asked between reductions; True returns what is there.
    """
    return reduce_further(unreduced(problem), stop)


def reduce_further(reduced: Reduced, stop: Callable[[], bool] | None = None) -> Reduced:
    """Reduce what may have been reduced before."""
    for _ in range(_MAX_ROUNDS):
        before = reduced.size
        reduced = _cheap_rounds(reduced, stop)
        for name in _DEAR:
            if stop is not None and stop():
                return reduced
            # What is left over by the dear reductions must be derivable and reachable again.
            reduced = drop_underivable(REDUCTIONS[name](reduced))
        if reduced.size == before:
            break
    return reduced


def _cheap_rounds(reduced: Reduced, stop: Callable[[], bool] | None) -> Reduced:
    for _ in range(_MAX_ROUNDS):
        before = reduced.size
        for name, reduction in REDUCTIONS.items():
            if name not in _DEAR:
                if stop is not None and stop():
                    return reduced
                reduced = reduction(reduced)
        if reduced.size == before:
            break
    return reduced
