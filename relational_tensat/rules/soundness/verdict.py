"""What was found out about a rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from relational_tensat.rules.soundness.counterexample import Counterexample

#: sound: it held wherever it was tried; unsound: somewhere it did not; untested: too few operands
#: were found that it applies to.
STATUSES = ("sound", "unsound", "untested")
#: exact: in arithmetic modulo a prime, with random functions for what is not algebraic; float64: in
#: floating point, up to rounding, since the law is about real numbers only.
EVIDENCE = ("exact", "float64")
#: What is known in an element type, the strongest first. proved: by z3, or on every value; everywhere: on
#: all that was tried, infinities, NaN and the ends of the type among it; moderate: on operands of moderate
#: size (see ``FloatFormat.moderate``), so that a run applies the rule to no extreme constants.
TYPE_EVIDENCE = ("proved", "everywhere", "moderate")
#: Which values elements had, the most telling first: all of their type, where nothing rounds; numbers of
#: each length in bits beside the ends of the type; ordinary, large and small numbers beside the ends.
VALUES = ("every value", "each length in bits", "ordinary and ends")


@dataclass(frozen=True, slots=True)
class Shown:
    """What the instances of a rule have shown.

    Attributes:
        outcomes: how many outcomes of its decisions came out.
        impossible: those that cannot, as z3 proved.
        missed: those that may, and did not; with one, a rule is untested.
        untried: numbers at which one outcome becomes another, and that were not found.
        ones: how often, over pairs of operands and axes, one had a dim of 1 where the other had many.
        values: per element type, which values elements had: one of ``VALUES``, the most telling.
    """

    outcomes: int = 0
    impossible: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    untried: tuple[str, ...] = ()
    ones: int = 0
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found out about one rule.

    Attributes:
        rule: its name.
        status: one of ``STATUSES``.
        evidence: one of ``EVIDENCE``.
        trials: how many different configurations (shapes, element types, attributes) were tried.
        reason: one line that says why.
        counterexample: where it does not hold, if it is unsound.
        types: what is known of it in machine arithmetic, one of ``TYPE_EVIDENCE`` per element type; an
            element type that is not here was not met.
        shown: what the instances have shown.
    """

    rule: str
    status: str
    evidence: str
    trials: int
    reason: str
    counterexample: Counterexample | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    shown: Shown = field(default_factory=Shown)
