"""Reductions declare themselves: a decorator stands beside the proof, and makes the list of them.

A new reduction is one function in one file of ``reductions/``, all of which are imported when the
first of them is; nothing else names it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from relational_tensat.base.deadline import Check
from relational_tensat.extract.exact.reduce.smaller_problem import Reduced
from relational_tensat.extract.techniques import Technique, TechniqueGain, declare


class ReductionStage(Enum):
    """When a reduction has its turn, see ``rounds``."""

    LINEAR = "linear"
    """In every round: it takes linear time, or nearly."""
    COSTLY = "costly"
    """Between rounds of the linear ones, each within its share of the time."""
    PINNED = "pinned"
    """After those, where the root has one e-node that needs all that every choice contains."""


class ReduceFunction(Protocol):
    """Carries out a reduction."""

    def __call__(self, reduced: Reduced, check: Check = ..., /) -> Reduced:
        """Return a smaller e-graph that keeps an optimum, or the same where nothing is dropped.

        Args:
            reduced: an e-graph; after ``underivable``, every e-node of it is derivable.
            check: asked often.
        """
        ...


@dataclass(frozen=True, slots=True)
class Reduction:
    """A declared reduction.

    Attributes:
        name: that of its technique.
        run: carries it out.
        stage: when it has its turn.
        order: within its stage, the lower ones come first.
    """

    name: str
    run: ReduceFunction
    stage: ReductionStage
    order: int


REDUCTIONS: dict[str, Reduction] = {}
"""All reductions by name."""


def reduction(
    name: str,
    drops: str,
    *,
    stage: ReductionStage,
    order: int,
    earns_on: TechniqueGain | None,
) -> Callable[[ReduceFunction], ReduceFunction]:
    """Declare a function as a reduction; its docstring proves that an optimum is kept.

    Args:
        name: the word that users type to do without it.
        drops: the kind of things that it drops, for people.
        stage, order: see :class:`Reduction`.
        earns_on: see :class:`Technique`.

    Raises:
        ValueError: the name is taken.
    """

    def register(run: ReduceFunction) -> ReduceFunction:
        declare(Technique(name, drops, earns_on))
        REDUCTIONS[name] = Reduction(name, run, stage, order)
        return run

    return register


def in_stage(stage: ReductionStage) -> list[Reduction]:
    """Return the reductions of a stage in the order of their use."""
    members = [reduction for reduction in REDUCTIONS.values() if reduction.stage is stage]
    return sorted(members, key=lambda member: member.order)
