"""Where a rule does not hold: operands, parameters, and the first element that differs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from relational_tensat.tensor.types import AttrValue, TensorType


@dataclass(frozen=True, slots=True)
class Difference:
    """What is not equal on the two sides.

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
