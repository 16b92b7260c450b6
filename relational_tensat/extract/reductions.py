"""All reductions, one after the other, as long as they are worth their time."""

from __future__ import annotations

from collections.abc import Callable

from relational_tensat.extract.bottom_up import DagDeriver
from relational_tensat.extract.dominance import drop_dominated_classes
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
)
from relational_tensat.extract.merging import (
    merge_single_parents,
    merge_single_users,
    pass_through,
)
from relational_tensat.extract.must import drop_by_must
from relational_tensat.extract.reduced import Reduced
from relational_tensat.extract.techniques import Techniques

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
    "single-users": merge_single_users,
    "dominated-classes": drop_dominated_classes,
    "pass-through": pass_through,
    "dear": drop_dear,
    "must": drop_by_must,
}
"""The reductions by name, in the order of their use: cheap ones first."""

_DEAR = ("single-users", "dominated-classes", "pass-through", "dear", "must")

WORTHWHILE = 0.02
"""Reductions are repeated as long as they drop at least this fraction of the e-nodes."""


def reduce(
    reduced: Reduced,
    stop: Callable[[], bool] | None = None,
    techniques: Techniques | None = None,
) -> Reduced:
    """Return a smaller e-graph with an optimum that lifts to one of this e-graph.

    Args:
        reduced: an e-graph whose root has an acyclic derivation; perhaps reduced before.
        stop: asked between reductions; True returns what is there.
        techniques: which reductions to use, and where to count what they take away.
    """
    techniques = techniques or Techniques()
    while True:
        before = reduced
        reduced = _cheap_rounds(reduced, stop, techniques)
        for name in _DEAR:
            if stop is not None and stop():
                return reduced
            reduced = techniques.apply(name, REDUCTIONS[name], reduced)
            # What is left over by the dear reductions must be derivable and reachable again.
            reduced = techniques.apply("underivable", drop_underivable, reduced)
        if not shrunk(before, reduced):
            return _cheap_rounds(reduced, stop, techniques)


def shrunk(before: Reduced, after: Reduced) -> bool:
    """Return whether enough e-nodes went away to try again."""
    return after.problem.n_nodes < before.problem.n_nodes * (1 - WORTHWHILE)


def _cheap_rounds(
    reduced: Reduced, stop: Callable[[], bool] | None, techniques: Techniques
) -> Reduced:
    while True:
        before = reduced
        for name, reduction in REDUCTIONS.items():
            if name not in _DEAR:
                if stop is not None and stop():
                    return reduced
                reduced = techniques.apply(name, reduction, reduced)
        if not shrunk(before, reduced):
            return reduced
