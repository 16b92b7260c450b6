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
    """

    rule: str
    status: str
    evidence: str
    trials: int
    reason: str
    counterexample: Counterexample | None = None
    types: Mapping[str, str] = field(default_factory=dict)
