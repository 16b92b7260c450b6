"""The verdict on a rule.

A ``Counterexample`` shows where a rule fails: operands, parameters, and the first element that differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from relational_tensat.tensor.types import AttrValue, TensorType


@dataclass(frozen=True, slots=True)
class Difference:
    """The element that is not equal on the two sides.

    Attributes:
        source: the index of the source and its target.
        left_type, right_type: the types of both, as text.
        index: the first element that differs, in C order; None where the types differ.
        left, right: its values, in float64.
        part: of a result that is a tuple, the index of the tensor.
        undefined: the right side has no value where the left side has one.
    """

    source: int
    left_type: str
    right_type: str
    index: tuple[int, ...] | None = None
    left: float | int | bool | None = None
    right: float | int | bool | None = None
    part: int | None = None
    undefined: bool = False


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A configuration of a rule, and operands, for which its two sides differ.

    Attributes:
        rule, law: the rule's.
        shapes: the type of each variable that stands for a tensor.
        parameters: the value of each variable that stands for an attribute.
        difference: the first one.
        snippet: Python code that computes both sides and prints them.
    """

    rule: str
    law: str
    shapes: dict[str, TensorType]
    parameters: dict[str, AttrValue]
    difference: Difference
    snippet: str

    def text(self) -> str:
        """Return a runnable Python snippet that shows the difference."""
        return self.snippet

    def summary(self) -> str:
        """Return operands, parameters and the difference in one line."""
        operands = [f"{name} {kind}" for name, kind in self.shapes.items()]
        operands += [f"{name} = {_text(value)}" for name, value in self.parameters.items()]
        return f"{', '.join(operands)}: {self._difference_text()}"

    def to_json(self) -> dict[str, Any]:
        """Return it as values of JSON."""
        difference = self.difference
        return {
            "shapes": {name: str(kind) for name, kind in self.shapes.items()},
            "parameters": dict(self.parameters),
            "source": difference.source,
            "left_type": difference.left_type,
            "right_type": difference.right_type,
            "index": None if difference.index is None else list(difference.index),
            "left": difference.left,
            "right": difference.right,
            "snippet": self.snippet,
        }

    def _difference_text(self) -> str:
        difference = self.difference
        if difference.undefined:
            return (
                "the right side is undefined: an integer quotient or conversion has no result,"
                " or an index is on no axis"
            )
        if difference.index is None:
            return f"{difference.left_type} on the left, {difference.right_type} on the right"
        place = list(difference.index)
        return (
            f"element {place} is {difference.left!r} on the left, {difference.right!r} on the right"
        )


def _text(value: AttrValue) -> str:
    return f"[{' '.join(map(str, value))}]" if isinstance(value, tuple) else str(value)


#: sound: it held wherever it was tried; unsound: somewhere it did not; untested: too few operands
#: were found that it applies to.
STATUSES = ("sound", "unsound", "untested")
#: exact: in arithmetic modulo a prime, with random functions for those that are not algebraic; float64: in
#: floating point, up to rounding, since the law is about real numbers only.
EVIDENCE = ("exact", "float64")
#: The evidence in an element type, the strongest first. proved: by z3, or on every value; everywhere: on
#: all inputs tried, infinities, NaN and the ends of the type among them; moderate: on operands of moderate
#: size (see ``FloatFormat.moderate``), so that a run applies the rule to no extreme constants.
TYPE_EVIDENCE = ("proved", "everywhere", "moderate")
#: The values that elements had, the most telling first: all of their type, if nothing rounds; numbers of
#: each length in bits beside the ends of the type; ordinary, large and small numbers beside the ends.
VALUES = ("every value", "each length in bits", "ordinary and ends")


@dataclass(frozen=True, slots=True)
class Shown:
    """The coverage of a rule's instances, for reports.

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
    """The verdict on one rule.

    Attributes:
        rule: its name.
        status: one of ``STATUSES``.
        evidence: one of ``EVIDENCE``.
        trials: how many different configurations (shapes, element types, attributes) were tried.
        reason: one line that says why.
        counterexample: where it does not hold, if it is unsound.
        types: the evidence in machine arithmetic, one of ``TYPE_EVIDENCE`` per element type; other element
            types were not met.
        shown: the coverage of the instances.
    """

    rule: str
    status: str
    evidence: str
    trials: int
    reason: str
    counterexample: Counterexample | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    shown: Shown = field(default_factory=Shown)
