"""All reductions, one after the other, as long as they are worth their time."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from functools import partial
from typing import TypeAlias

from relational_tensat.base.deadline import Budget, BudgetSpentError, Check, unlimited
from relational_tensat.extract.exact.reduce.declaration import REDUCTIONS, Stage, in_stage
from relational_tensat.extract.exact.reduce.pinning import PINNING, pin_required, with_single_root
from relational_tensat.extract.exact.reduce.reduced import Reduced
from relational_tensat.extract.techniques import Techniques

WORTHWHILE = 0.02
"""Reductions are repeated as long as they drop at least this fraction of the e-nodes."""

_SHARE_OF_ONE = 0.5
"""How much of the time that is left for reductions one of them may take."""

Steps: TypeAlias = Generator[Reduced, None, Reduced]
"""E-graphs that become smaller; the last is returned, too. Any of them will do where time is over."""


def reduce(
    reduced: Reduced,
    check: Check = unlimited,
    techniques: Techniques | None = None,
) -> Reduced:
    """Return a smaller e-graph with an optimum that lifts to one of this e-graph.

    Args:
        reduced: an e-graph whose root has an acyclic derivation; perhaps reduced before.
        check: asked often.
        techniques: which reductions to use, and where to count what they drop.
    """
    for smaller in steps(reduced, check, techniques or Techniques()):
        reduced = smaller
    return reduced


def reduce_and_pin(reduced: Reduced, check: Check, techniques: Techniques) -> Steps:
    """Yield the same as it becomes smaller, and its root needs what every choice contains."""
    reduced = with_single_root((yield from steps(reduced, check, techniques)))
    while True:
        while techniques.uses(PINNING):
            before = reduced
            reduced = techniques.apply(PINNING, partial(pin_required, check=check), reduced)
            reduced = yield from steps(reduced, check, techniques)
            if not shrunk(before, reduced):
                break
        before = reduced
        for member in in_stage(Stage.PINNED):
            smaller = _apply(member.name, reduced, check, techniques)
            if smaller is not reduced:
                smaller = with_single_root((yield from steps(smaller, check, techniques)))
            reduced = smaller
        if not shrunk(before, reduced):
            return reduced


def steps(reduced: Reduced, check: Check, techniques: Techniques) -> Steps:
    """Yield the same as the linear and the costly reductions make it smaller.

    Where ``check`` is a budget, a reduction that takes more than its share of it is left out.
    """
    while True:
        before = reduced
        reduced = _linear_rounds(reduced, check, techniques)
        yield reduced
        for member in in_stage(Stage.COSTLY):
            check()
            own = check.share(_SHARE_OF_ONE) if isinstance(check, Budget) else check
            with suppress(BudgetSpentError):
                reduced = _apply(member.name, reduced, own, techniques)
            # What is left over by the costly reductions must be derivable and reachable again.
            reduced = _apply("underivable", reduced, check, techniques)
            yield reduced
        if not shrunk(before, reduced):
            reduced = _linear_rounds(reduced, check, techniques)
            yield reduced
            return reduced


def shrunk(before: Reduced, after: Reduced) -> bool:
    """Return whether enough e-nodes went away to try again."""
    return after.problem.n_nodes < before.problem.n_nodes * (1 - WORTHWHILE)


def linear_round(reduced: Reduced, check: Check, techniques: Techniques) -> Reduced:
    """Carry out every reduction that takes linear time, or nearly, once."""
    for member in in_stage(Stage.LINEAR):
        check()
        reduced = _apply(member.name, reduced, check, techniques)
    return reduced


def _linear_rounds(reduced: Reduced, check: Check, techniques: Techniques) -> Reduced:
    while True:
        before = reduced
        reduced = linear_round(reduced, check, techniques)
        if not shrunk(before, reduced):
            return reduced


def _apply(name: str, reduced: Reduced, check: Check, techniques: Techniques) -> Reduced:
    """Carry out a reduction by its name, unless it is left out."""
    return techniques.apply(name, lambda before: REDUCTIONS[name].run(before, check), reduced)
