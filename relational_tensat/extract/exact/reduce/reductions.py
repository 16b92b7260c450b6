"""All reductions, one after the other, as long as they are worth their time."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from functools import partial
from typing import TypeAlias

from relational_tensat.base.deadline import Budget, BudgetSpentError, Check, unlimited
from relational_tensat.extract.exact.reduce.detours import drop_detours
from relational_tensat.extract.exact.reduce.dominance import drop_dominated_classes
from relational_tensat.extract.exact.reduce.dropping import (
    drop_dearer_than_derivation,
    drop_dominated,
    drop_self_loops,
    drop_underivable,
    drop_unreachable,
)
from relational_tensat.extract.exact.reduce.inlining import inline_free_classes, inline_single_free
from relational_tensat.extract.exact.reduce.merging import (
    merge_single_parents,
    merge_single_users,
    pass_through,
)
from relational_tensat.extract.exact.reduce.reduced import Reduced
from relational_tensat.extract.exact.reduce.required import drop_by_must
from relational_tensat.extract.greedy.bottom_up import DagDeriver
from relational_tensat.extract.techniques import Techniques

Reduction = Callable[..., Reduced]
"""Of an e-graph; those that may take long also take a ``Check``."""


def drop_dear(reduced: Reduced, check: Check = unlimited) -> Reduced:
    """Drop e-nodes dearer than the whole greedy derivation of their class."""
    deriver = DagDeriver(reduced.problem, check=check)
    upper = deriver.derivation_costs(reduced.problem.cost_us)
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
    "detours": drop_detours,
}
"""The reductions by name, in the order of their use: cheap ones first."""

DEAR = ("single-users", "dominated-classes", "pass-through", "dear", "must")

_ON_DEMAND = ("detours",)
"""What is no part of the rounds: it finds something once what every choice contains is given."""

WORTHWHILE = 0.02
"""Reductions are repeated as long as they drop at least this fraction of the e-nodes."""


Steps: TypeAlias = Generator[Reduced, None, Reduced]
"""E-graphs that become smaller; the last is returned, too."""

_SHARE_OF_ONE = 0.5
"""How much of the time that is left for reductions one of them may take."""


def reduce(
    reduced: Reduced,
    check: Check = unlimited,
    techniques: Techniques | None = None,
) -> Reduced:
    """Return a smaller e-graph with an optimum that lifts to one of this e-graph.

    Args:
        reduced: an e-graph whose root has an acyclic derivation; perhaps reduced before.
        check: asked often.
        techniques: which reductions to use, and where to count what they take away.
    """
    for smaller in steps(reduced, check, techniques or Techniques()):
        reduced = smaller
    return reduced


def steps(reduced: Reduced, check: Check, techniques: Techniques) -> Steps:
    """Yield the same as it becomes smaller: any of it will do where the time for reductions is over.

    Where ``check`` is a budget, a reduction that takes more than its share of it is left out.
    """
    while True:
        before = reduced
        reduced = _cheap_rounds(reduced, check, techniques)
        yield reduced
        for name in DEAR:
            check()
            own = check.share(_SHARE_OF_ONE) if isinstance(check, Budget) else check
            with suppress(BudgetSpentError):
                reduced = techniques.apply(name, partial(REDUCTIONS[name], check=own), reduced)
            # What is left over by the dear reductions must be derivable and reachable again.
            reduced = techniques.apply("underivable", drop_underivable, reduced)
            yield reduced
        if not shrunk(before, reduced):
            reduced = _cheap_rounds(reduced, check, techniques)
            yield reduced
            return reduced


def shrunk(before: Reduced, after: Reduced) -> bool:
    """Return whether enough e-nodes went away to try again."""
    return after.problem.n_nodes < before.problem.n_nodes * (1 - WORTHWHILE)


def _cheap_rounds(reduced: Reduced, check: Check, techniques: Techniques) -> Reduced:
    while True:
        before = reduced
        reduced = cheap_round(reduced, check, techniques)
        if not shrunk(before, reduced):
            return reduced


def cheap_round(reduced: Reduced, check: Check, techniques: Techniques) -> Reduced:
    """Carry out every reduction that takes linear time, or nearly, once."""
    for name, reduction in REDUCTIONS.items():
        if name not in DEAR and name not in _ON_DEMAND:
            check()
            reduced = techniques.apply(name, reduction, reduced)
    return reduced
