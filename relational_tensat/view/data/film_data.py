"""The film, as a page shows it."""

from __future__ import annotations

from dataclasses import dataclass

from relational_tensat.view.data.graph_data import Frame, Value


@dataclass(frozen=True, slots=True)
class FrameChange:
    """What makes one frame of the next: values that go, and values that come or take another form."""

    gone: tuple[str, ...]
    put: tuple[Value, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a rule, as its file writes it, and what its parts were at a step."""

    text: str
    values: str


@dataclass(frozen=True, slots=True)
class FilmStep:
    """One application of one rule.

    Attributes:
        backward: the law is read from right to left.
        places: what was replaced, as the model calls it.
        found, built: operators that the rule matched, and those that it put in their place.
        matched: ids of the values that the rule matched (before) and built (after).
        cost_us, operators: of the graph after the step.
        text: the rule, as its file writes it.
        conditions: of the rule, with their values here.
        evidence: how it is known that the rule is true.
        check: what the comparison of the replaced tensors gave; "" where none was made.
        change: from the frame before.
    """

    number: int
    rule: str
    law: str
    backward: bool
    places: tuple[str, ...]
    found: tuple[str, ...]
    built: tuple[str, ...]
    replaced: tuple[str, ...]
    cost_us: float
    operators: int
    text: str
    conditions: tuple[Condition, ...]
    evidence: str
    check: str
    change: FrameChange


@dataclass(frozen=True, slots=True)
class Film:
    """The way from the original graph to the extracted one.

    Attributes:
        start: the original graph with equal values shared, which costs ``start_us``.
        steps: in order; the last one ends at the extracted graph.
    """

    start: Frame
    start_us: float
    steps: tuple[FilmStep, ...]
